// Package browser holds the tests that look at the page with a real browser: Chromium, or what
// REASONIX_BROWSER names. It has no code of its own.
package browser

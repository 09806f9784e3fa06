package serve

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"strings"
)

// NewToken makes a token that nobody guesses.
func NewToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails, it ends the process instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// auth knows the token; the zero value lets everybody pass.
type auth struct {
	asked bool
	sum   [sha256.Size]byte
}

func newAuth(token string) auth {
	return auth{asked: token != "", sum: sha256.Sum256([]byte(token))}
}

// is compares in a time that tells nothing.
func (a auth) is(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], a.sum[:]) == 1
}

// passes reports whether a request carries the token: in the header that programs send, in the
// cookie of the page, or, for the page alone, in the URL that was printed.
func (a auth) passes(r *http.Request) bool {
	if !a.asked {
		return true
	}
	if h := r.Header.Get("Authorization"); h != "" {
		scheme, token, _ := strings.Cut(h, " ")
		return strings.EqualFold(scheme, "Bearer") && a.is(strings.TrimSpace(token))
	}
	if r.URL.Path == "/" && r.URL.Query().Has("token") {
		return a.is(r.URL.Query().Get("token"))
	}
	for _, c := range r.CookiesNamed(cookieName(r)) {
		if a.is(c.Value) {
			return true
		}
	}
	return false
}

// cookieName has the port in it: cookies know hosts only, and there may be a server for each of
// several workspaces.
func cookieName(r *http.Request) string {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if _, port, err := net.SplitHostPort(local.String()); err == nil {
			return "reasonix-" + port
		}
	}
	return "reasonix"
}

// enter turns the token of the printed URL into the page's cookie, and takes it out of the
// address bar and the history of the browser.
func (a auth) enter(w http.ResponseWriter, r *http.Request) {
	if a.asked {
		http.SetCookie(w, &http.Cookie{
			Name: cookieName(r), Value: r.URL.Query().Get("token"), Path: "/",
			HttpOnly: true, SameSite: http.SameSiteStrictMode,
		})
	}
	w.Header().Set("Location", "/")
	w.WriteHeader(http.StatusSeeOther)
}

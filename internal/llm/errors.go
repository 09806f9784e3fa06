package llm

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Kind says what went wrong with a request.
type Kind string

// The kinds of errors. They are part of the documented interface.
const (
	BadRequest   Kind = "bad_request"      // 400: the request is not as the server wants it
	TooLong      Kind = "context_length"   // 400 of a conversation that does not fit the model
	Unauthorized Kind = "unauthorized"     // 401, 403
	NoBalance    Kind = "no_balance"       // 402
	Invalid      Kind = "invalid_request"  // 422: a parameter's value
	RateLimited  Kind = "rate_limited"     // 429
	ServerError  Kind = "server_error"     // 500 and others of its kind
	Overloaded   Kind = "overloaded"       // 503
	Cut          Kind = "connection_cut"   // the answer ended before its end
	Stalled      Kind = "stalled"          // nothing came for too long
	Unreachable  Kind = "unreachable"      // no connection
	Malformed    Kind = "malformed_answer" // what came is not the protocol
	NotFound     Kind = "not_found"        // 404: no such model or address
)

// Error is a request that failed, after all retries.
type Error struct {
	Kind    Kind
	Status  int    // of HTTP; 0 when there was no answer
	Message string // what the server said, or what happened
	Tries   int    // how often the request was sent

	retryAfter time.Duration
	err        error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("ask the model: ")
	b.WriteString(e.Message)
	if e.Status != 0 {
		fmt.Fprintf(&b, " (HTTP %d)", e.Status)
	}
	if e.Tries > 1 {
		fmt.Fprintf(&b, ", after %d tries", e.Tries)
	}
	return b.String()
}

// Unwrap gives what the system said.
func (e *Error) Unwrap() error { return e.err }

// Retryable reports whether the same request may succeed later.
func (e *Error) Retryable() bool {
	switch e.Kind {
	case RateLimited, ServerError, Overloaded, Cut, Stalled, Unreachable, Malformed:
		return true
	default:
		return false
	}
}

// Hint says what a person can do.
func (e *Error) Hint() string {
	switch e.Kind {
	case Unauthorized:
		return "check the key in DEEPSEEK_API_KEY (or REASONIX_API_KEY for another server)"
	case NoBalance:
		return "the account has no balance left: top it up, then try again; nothing was lost"
	case RateLimited:
		return "too many requests for this account: wait a little, then try again; nothing was lost"
	case Overloaded, ServerError:
		return "the server has trouble: try again in some minutes; nothing was lost"
	case Cut, Stalled:
		return "the connection to the server broke: try again; nothing was lost"
	case Unreachable:
		return "check the network and REASONIX_BASE_URL"
	case TooLong:
		return "compact the conversation (/compact), or rewind to an earlier turn"
	case NotFound:
		return "check REASONIX_MODEL and REASONIX_BASE_URL"
	case Malformed:
		return "REASONIX_BASE_URL must name a server that speaks chat completions"
	case BadRequest, Invalid:
		return "the server refuses this request; rewinding to the turn before takes the conversation back to where it was accepted"
	}
	return ""
}

// ofStatus is the error that an HTTP status stands for.
func ofStatus(status int, message string) *Error {
	e := &Error{Status: status, Message: message}
	lower := strings.ToLower(message)
	switch {
	case status == http.StatusBadRequest && (strings.Contains(lower, "context length") || strings.Contains(lower, "context_length")),
		status == http.StatusRequestEntityTooLarge:
		e.Kind = TooLong
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Kind = Unauthorized
	case status == http.StatusPaymentRequired:
		e.Kind = NoBalance
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		e.Kind = NotFound
	case status == http.StatusUnprocessableEntity:
		e.Kind = Invalid
	case status == http.StatusTooManyRequests:
		e.Kind = RateLimited
	case status == http.StatusServiceUnavailable:
		e.Kind = Overloaded
	case status >= 500, status == http.StatusRequestTimeout:
		e.Kind = ServerError
	default:
		e.Kind = BadRequest
	}
	return e
}

// errStalled is the cause with which a silent request is ended.
var errStalled = errors.New("the server went silent")

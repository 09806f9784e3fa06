package move

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"reasonix/rewind"
	"reasonix/store"
)

// ErrName is returned for a name that stands for something else already.
var ErrName = errors.New("the name is not free")

// FreeName refuses a session's name that would stand for something else too, with ErrName. id is
// the session that is to have it; "" for a new one.
func FreeName(tx *store.Tx, id store.SessionID, name string) error {
	_, _, turn := ParseTurn(name)
	switch {
	case name == "":
		return nil
	case name == "-" || name == "current" || turn:
		return fmt.Errorf("%q cannot name a session, it means a turn or a session already: %w", name, ErrName)
	}
	all, err := tx.Sessions()
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.ID != id && s.Name == name || string(s.ID) == name || s.ID != id && s.SourceID == name {
			return fmt.Errorf("%q means session %s already: %w", name, s.ID, ErrName)
		}
	}
	return nil
}

// ParseTurn reads "3", "-1", "latest" or "SESSION:3". session is "" when none is named, turn a
// number from 0 or rewind.Latest.
func ParseTurn(text string) (session string, turn int, ok bool) {
	number := text
	if i := strings.LastIndex(text, ":"); i >= 0 {
		session, number = text[:i], text[i+1:]
		if session == "" {
			return "", 0, false
		}
	}
	if number == "latest" || number == "-1" {
		return session, rewind.Latest, true
	}
	n, err := strconv.Atoi(number)
	return session, n, err == nil && n >= 0 && n <= 1<<30
}

package db

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"

	"modernc.org/sqlite"
)

// Function is an SQL function that gives the same for the same arguments: nil, int64, float64,
// string or []byte, as its result is one of them.
type Function struct {
	Name string
	Args int
	Do   func(args []any) (any, error)
}

// ErrFunctions is returned when two stores with functions are to be open at once: the driver knows
// functions for the whole process only.
var ErrFunctions = errors.New("another open store has functions")

// provided are the functions of the one DB that has some. The driver can not forget a function, so
// what it calls is looked up here.
var provided struct {
	sync.Mutex
	owner *DB
	known map[string]bool // names that the driver knows
	do    map[string]func([]any) (any, error)
}

// provide makes functions callable in the connections that d opens from now on.
func (d *DB) provide(all []Function) error {
	if len(all) == 0 {
		return nil
	}
	provided.Lock()
	defer provided.Unlock()
	if provided.owner != nil {
		return ErrFunctions
	}
	if provided.known == nil {
		provided.known = map[string]bool{}
	}
	for _, f := range all {
		if provided.known[f.Name] {
			continue
		}
		if err := sqlite.RegisterDeterministicScalarFunction(f.Name, int32(f.Args), call(f.Name)); err != nil {
			return fmt.Errorf("register function %s: %w", f.Name, err)
		}
		provided.known[f.Name] = true
	}
	provided.owner, provided.do = d, map[string]func([]any) (any, error){}
	for _, f := range all {
		provided.do[f.Name] = f.Do
	}
	return nil
}

// withdraw takes the functions of d away, if it has any.
func (d *DB) withdraw() {
	provided.Lock()
	defer provided.Unlock()
	if provided.owner == d {
		provided.owner, provided.do = nil, nil
	}
}

func call(name string) func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
	return func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		provided.Lock()
		do := provided.do[name]
		provided.Unlock()
		if do == nil {
			return nil, fmt.Errorf("function %s belongs to another store", name)
		}
		given := make([]any, len(args))
		for i, a := range args {
			given[i] = a
		}
		return do(given)
	}
}

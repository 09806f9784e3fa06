package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"
)

// Statements that are kept prepared per connection, and the longest text that is. Domain code
// has far fewer; texts that are built at run time must not pile up.
const (
	maxStatements    = 256
	maxStatementText = 8 << 10
)

func init() { sqlx.BindDriver("sqlite", sqlx.QUESTION) }

// dsn names the file at path in SQLite's URI form. Every connection gets its settings from
// here, so that one which database/sql has to replace is set like the first.
func dsn(path string, busy time.Duration, params ...string) string {
	p := filepath.ToSlash(path)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p // a drive letter
	}
	// A wait for a lock can occur in any later pragma: the timeout comes first.
	all := append([]string{"_pragma=busy_timeout(" + strconv.FormatInt(busy.Milliseconds(), 10) + ")"}, params...)
	all = append(
		all,
		"_pragma=synchronous(2)",
		"_pragma=foreign_keys(1)",
		"_pragma=trusted_schema(0)",
		"_pragma=cell_size_check(1)",
	)
	return "file:" + (&url.URL{Path: p}).EscapedPath() + "?" + strings.Join(all, "&")
}

// openPool makes a pool of connections to dsn; none is opened yet.
func openPool(dsn string) (*sqlx.DB, error) {
	base, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	return sqlx.NewDb(sql.OpenDB(connector{base}), "sqlite"), nil
}

// connector puts a statement cache in front of each connection of the driver.
type connector struct{ driver.Connector }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	base, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	full, ok := base.(fullConn)
	if !ok {
		base.Close()
		return nil, fmt.Errorf("the SQLite driver's %T lacks a method", base)
	}
	return &conn{fullConn: full, stmts: make(map[string]*stmt)}, nil
}

// fullConn is what database/sql uses of a connection of the SQLite driver.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// conn keeps the statements of a connection prepared, by their text. It sits below
// database/sql because only the driver's level sees when a result is closed: running a
// statement again while its last result is still being read would end that result.
// database/sql lets only one goroutine at a time in.
type conn struct {
	fullConn
	stmts map[string]*stmt
}

type stmt struct {
	fullStmt
	kept bool // in conn.stmts; else closed after its one use
	busy bool // a result of it is being read
}

type fullStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

func (c *conn) statement(ctx context.Context, query string) (*stmt, error) {
	old := c.stmts[query]
	if old != nil && !old.busy {
		return old, nil
	}
	base, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	full, ok := base.(fullStmt)
	if !ok {
		base.Close()
		return nil, fmt.Errorf("the SQLite driver's %T lacks a method", base)
	}
	s := &stmt{fullStmt: full}
	if old == nil && len(c.stmts) < maxStatements && len(query) <= maxStatementText {
		s.kept = true
		c.stmts[query] = s
	}
	return s, nil
}

func (s *stmt) release() error {
	if s.busy = false; s.kept {
		return nil
	}
	return s.Close()
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	res, err := s.ExecContext(ctx, args)
	if rerr := s.release(); err == nil && rerr != nil {
		return nil, rerr
	}
	return res, err
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	base, err := s.QueryContext(ctx, args)
	if err != nil {
		_ = s.release()
		return nil, err
	}
	full, ok := base.(fullRows)
	if !ok {
		base.Close()
		_ = s.release()
		return nil, fmt.Errorf("the SQLite driver's %T lacks a method", base)
	}
	s.busy = true
	return &rows{fullRows: full, stmt: s}, nil
}

// Close implements driver.Conn.
func (c *conn) Close() error {
	for _, s := range c.stmts {
		_ = s.Close() // finalizing repeats the error of the last run, which was reported then
	}
	return c.fullConn.Close()
}

type fullRows interface {
	driver.Rows
	driver.RowsColumnTypeDatabaseTypeName
	driver.RowsColumnTypeLength
	driver.RowsColumnTypeNullable
	driver.RowsColumnTypePrecisionScale
	driver.RowsColumnTypeScanType
}

type rows struct {
	fullRows
	stmt *stmt // nil once closed
}

// Close implements driver.Rows.
func (r *rows) Close() error {
	err := r.fullRows.Close()
	if r.stmt == nil {
		return err
	}
	if rerr := r.stmt.release(); err == nil {
		err = rerr
	}
	r.stmt = nil
	return err
}

// failedRow is a row whose Scan gives err, which sqlx has no other way to make.
func failedRow(err error) *sqlx.Row {
	pool := sqlx.NewDb(sql.OpenDB(noConnection{err: err}), "sqlite")
	defer pool.Close()
	return pool.QueryRowx("")
}

type noConnection struct {
	driver.Connector
	err error
}

func (n noConnection) Connect(context.Context) (driver.Conn, error) { return nil, n.err }

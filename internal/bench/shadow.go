package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// shadow is a git repository beside a work tree that does not know of it.
type shadow struct {
	r    *rig
	dir  string // the work tree
	repo string
}

// shadow makes a repository for dir; nil where there is no git.
func (r *rig) shadow(dir string) (*shadow, error) {
	if r.git == "" {
		return nil, nil
	}
	at, err := r.folder("shadow")
	if err != nil {
		return nil, err
	}
	s := &shadow{r: r, dir: dir, repo: filepath.Join(at, "git")}
	_, err = s.run("init", "-q")
	return s, err
}

// side is a side of a comparison; do is called only where there is a git.
func (s *shadow) side(times int, prepare, do func() error) side {
	if s == nil {
		return side{name: "git", missing: noGit}
	}
	return side{name: "git", times: times, prepare: prepare, do: do}
}

// run runs git on the work tree, with nobody's settings.
func (s *shadow) run(args ...string) (string, error) {
	cmd := exec.CommandContext(s.r.ctx, s.r.git, args...)
	cmd.Dir = s.dir
	cmd.Env = append(
		os.Environ(), "GIT_DIR="+s.repo, "GIT_WORK_TREE="+s.dir, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a", "LC_ALL=C",
	)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// tree records the whole work tree: what a scan does.
func (s *shadow) tree() (string, error) {
	if _, err := s.run("add", "-A"); err != nil {
		return "", err
	}
	return s.run("write-tree")
}

// commit records the work tree as a commit: what a capture does.
func (s *shadow) commit() error {
	tree, err := s.tree()
	if err == nil {
		_, err = s.run("commit-tree", "-m", "turn", tree)
	}
	return err
}

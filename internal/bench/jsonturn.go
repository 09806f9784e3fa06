package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// jsonTurn is the usual checkpoint of tools that need no git: one JSON file for each turn, with
// the contents in it, which is written anew, synced and renamed at each capture.
type jsonTurn struct {
	dir    string
	number int
	turn   struct {
		Turn   int        `json:"turn"`
		Prompt string     `json:"prompt"`
		Files  []jsonFile `json:"files"`
	}
}

type jsonFile struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// begin begins the next turn.
func (j *jsonTurn) begin(prompt string) {
	j.turn.Turn, j.turn.Prompt, j.turn.Files = j.number, prompt, nil
	j.number++
}

func (j *jsonTurn) name() string {
	return filepath.Join(j.dir, fmt.Sprintf("turn-%05d.json", j.turn.Turn))
}

// add takes a content into the turn, in memory.
func (j *jsonTurn) add(path, content string) {
	j.turn.Files = append(j.turn.Files, jsonFile{path, content})
}

// save writes the turn, not durably, and returns its length.
func (j *jsonTurn) save() (int, error) {
	b, err := json.Marshal(j.turn)
	if err != nil {
		return 0, err
	}
	return len(b), os.WriteFile(j.name(), b, 0o600)
}

// capture takes a content into the turn, durably.
func (j *jsonTurn) capture(path, content string) error {
	j.add(path, content)
	b, err := json.Marshal(j.turn)
	if err != nil {
		return err
	}
	return replaceSynced(j.name(), b)
}

// load reads all turns, as a tool that keeps them in files does when it starts.
func (j *jsonTurn) load(turns int) error {
	for i := range turns {
		j.turn.Turn = i
		b, err := os.ReadFile(j.name())
		if err != nil {
			return err
		}
		if err := json.Unmarshal(b, &j.turn); err != nil {
			return err
		}
	}
	return nil
}

// replaceSynced writes a file beside its name, syncs it and renames it.
func replaceSynced(name string, b []byte) error {
	f, err := os.Create(name + ".tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".tmp", name)
}

package bench

import (
	"runtime"
	"slices"
	"time"
)

// rounds is in how many rounds sides are compared.
const rounds = 5

// noGit is why nothing was measured beside git.
const noGit = "git is not here"

// side is one way to do the work of a line.
type side struct {
	name string
	// times is how often it is done in a round, each time measured; 0 means once.
	times int
	// prepare, if any, is called before each time and not measured.
	prepare func() error
	do      func() error
	missing string // why it cannot be done; do is nil then
}

// compare measures ours and others by turns. What one side leaves to be written or collected is
// not the next one's.
func (r *rig) compare(ours side, others ...side) (figures, error) {
	sides := append([]side{ours}, others...)
	medians := make([][]float64, len(sides))
	var each []time.Duration // of ours
	for round := range r.size(rounds, 1) {
		for k := range sides {
			i := (k + round) % len(sides) // nobody is always first
			if sides[i].missing != "" {
				continue
			}
			took, err := r.round(sides[i])
			if err != nil {
				return figures{}, err
			}
			if i == 0 {
				each = append(each, took...)
			}
			medians[i] = append(medians[i], milliseconds(median(took)))
		}
	}
	f := figures{value: median(medians[0])}
	if len(each) >= 100 {
		slices.Sort(each)
		f.p99 = milliseconds(each[len(each)*99/100])
	}
	for i, s := range sides[1:] {
		b := Beside{Name: s.name, Missing: s.missing}
		if s.missing == "" {
			var ratios []float64
			for n, theirs := range medians[i+1] {
				ratios = append(ratios, theirs/medians[0][n])
			}
			b.Value, b.Ratio = median(medians[i+1]), median(ratios)
		}
		f.beside = append(f.beside, b)
	}
	return f, nil
}

func (r *rig) round(s side) (took []time.Duration, err error) {
	runtime.GC()
	settleDisk()
	for range max(1, s.times) {
		if err := r.ctx.Err(); err != nil {
			return nil, err
		}
		if s.prepare != nil {
			if err := s.prepare(); err != nil {
				return nil, err
			}
		}
		start := r.o.Now()
		if err := s.do(); err != nil {
			return nil, err
		}
		took = append(took, r.o.Now().Sub(start))
	}
	return took, nil
}

// size is what is measured in full, or the small part of it that is enough to see that it works.
func (r *rig) size(full, quick int) int {
	if r.o.Quick {
		return quick
	}
	return full
}

func median[T time.Duration | float64](all []T) T {
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

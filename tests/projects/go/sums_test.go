package sums

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOfNothingIsZero(t *testing.T) {
	if Sum() != 0 {
		t.Error("not zero")
	}
}

func TestOfTwo(t *testing.T) {
	for name, whole := range map[string]int{"small": 3, "wrong one": 5} {
		t.Run(name, func(t *testing.T) {
			if got := Sum(1, 2); got != whole {
				t.Errorf("Sum(1, 2) is %d, not %d", got, whole)
			}
		})
	}
}

func TestSkipped(t *testing.T) {
	t.Skip("not on this machine")
}

func TestPassesTheSecondTime(t *testing.T) {
	mark := filepath.Join(os.TempDir(), "luck")
	_, err := os.Stat(mark)
	if os.WriteFile(mark, nil, 0o600) != nil || err != nil {
		t.Fatal("the first time fails")
	}
}

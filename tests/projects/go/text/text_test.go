package text

import "testing"

func TestWord(t *testing.T) {
	if Word != "word" {
		t.Fail()
	}
}

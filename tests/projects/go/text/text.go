// Package text has words.
package text

// Word is one.
const Word = "word"

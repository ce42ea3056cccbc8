// Package sums adds.
package sums

// Sum adds its numbers.
func Sum(numbers ...int) int {
	whole := 0
	for _, number := range numbers {
		whole += number
	}
	return whole
}

def sums(*numbers):
    return sum(numbers)

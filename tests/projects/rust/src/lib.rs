//! Sums.

pub fn sum(numbers: &[i32]) -> i32 {
    numbers.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_nothing_is_zero() {
        assert_eq!(sum(&[]), 0);
    }

    #[test]
    fn of_two_is_wrong() {
        println!("a word before");
        assert_eq!(sum(&[1, 2]), 5, "one and two");
    }

    #[test]
    #[ignore = "not on this machine"]
    fn skipped() {
        panic!("never run");
    }
}

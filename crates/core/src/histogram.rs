//! Counts of whole numbers in buckets that grow with the number.
//!
//! Fixed buckets and integers alone, so that the same numbers give the same answers on every machine, and memory is
//! bounded whatever is counted: each power of two is cut into four, which makes 252 buckets at most. A quantile names
//! the upper end of its bucket, so it is never below the truth and at most a quarter above it.

use std::collections::BTreeMap;

/// Values below this have a bucket of their own.
const EXACT: u64 = 4;

/// Counted whole numbers, of which quantiles can be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    buckets: BTreeMap<u8, u64>,
    count: u64,
    sum: u64,
    max: u64,
}

impl Histogram {
    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        let bucket = self.buckets.entry(bucket_of(value)).or_default();
        *bucket = bucket.saturating_add(1);
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
    }

    /// Counts all that another one has counted.
    pub fn absorb(&mut self, other: &Self) {
        for (bucket, count) in &other.buckets {
            let own = self.buckets.entry(*bucket).or_default();
            *own = own.saturating_add(*count);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// Returns how many values were counted.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean, rounded down; none when nothing was counted.
    pub fn mean(&self) -> Option<u64> {
        self.sum.checked_div(self.count)
    }

    /// Returns the largest value; none when nothing was counted.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// Returns a value that at least `permille` thousandths of all values do not exceed; none when nothing was counted.
    pub fn quantile(&self, permille: u64) -> Option<u64> {
        let rank = self.count.saturating_mul(permille).div_ceil(1_000).max(1);
        let mut seen = 0_u64;
        let bucket = self.buckets.iter().find_map(|(bucket, count)| {
            seen = seen.saturating_add(*count);
            (seen >= rank).then_some(*bucket)
        })?;
        Some(upper_end(bucket).min(self.max))
    }
}

fn bucket_of(value: u64) -> u8 {
    if value < EXACT {
        return u8::try_from(value).unwrap_or(u8::MAX);
    }
    let power = value.ilog2();
    let quarter = (value >> (power - 2)) & 3;
    let bucket = u64::from(power - 1) * 4 + quarter;
    u8::try_from(bucket).unwrap_or(u8::MAX)
}

const fn upper_end(bucket: u8) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket;
    }
    let shift = bucket / 4 - 1;
    let width = 1_u64 << shift;
    ((4 + bucket % 4) << shift).saturating_add(width - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|value| histogram.add(*value));
        histogram
    }

    #[test]
    fn nothing_counted_has_no_quantile() {
        let histogram = Histogram::default();

        assert_eq!(histogram.quantile(500), None);
        assert_eq!(histogram.mean(), None);
        assert_eq!(histogram.max(), None);
    }

    #[test]
    fn every_number_has_a_bucket_that_holds_it() {
        for power in 0..64 {
            for value in [
                1_u64 << power,
                (1 << power) + (1 << power) / 3,
                u64::MAX >> power,
            ] {
                let bucket = bucket_of(value);
                assert!(value <= upper_end(bucket), "{value}");
                assert!(bucket == 0 || value > upper_end(bucket - 1), "{value}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_quantile_is_never_below_the_truth_and_at_most_a_quarter_above(
            values in prop::collection::vec(0_u64..1_000_000, 1..200),
            permille in 1_u64..=1_000,
        ) {
            let told = of(&values).quantile(permille).unwrap();

            let mut sorted = values;
            sorted.sort_unstable();
            let rank = (sorted.len() as u64 * permille).div_ceil(1_000).max(1);
            let truth = sorted[rank as usize - 1];
            prop_assert!(told >= truth && told <= truth + truth / 4, "{told} for {truth}");
        }

        #[test]
        fn two_together_are_what_all_of_it_is(
            left in prop::collection::vec(any::<u64>(), 0..50),
            right in prop::collection::vec(any::<u64>(), 0..50),
        ) {
            let mut both = of(&left);
            both.absorb(&of(&right));

            let all: Vec<u64> = left.into_iter().chain(right).collect();
            prop_assert_eq!(both, of(&all));
        }
    }
}

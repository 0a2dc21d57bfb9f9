//! Seeded draws: each stream of one seed is apart from the others, so that a dropped transition changes little else.

/// A generator of numbers that look random (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    state: u64,
}

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

impl Draw {
    /// Makes the generator of one stream of a seed.
    pub(crate) const fn new(seed: u64, stream: u64) -> Self {
        Self {
            state: mix(seed ^ mix(stream.wrapping_add(GAMMA))),
        }
    }

    /// Draws any number.
    pub(crate) const fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// Draws from `low..=high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        let span = u128::from(high.saturating_sub(low)) + 1;
        let drawn = (u128::from(self.bits()) * span) >> 64;
        low.saturating_add(u64::try_from(drawn).unwrap_or(0))
    }

    /// Draws a yes with a chance of `permille` in a thousand.
    pub(crate) fn chance(&mut self, permille: u64) -> bool {
        self.between(0, 999) < permille
    }

    /// Draws one of `values`, which are not empty.
    pub(crate) fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        let last = values.len().saturating_sub(1);
        values[self.index(last.saturating_add(1))]
    }

    /// Draws a place below `count`, which is not 0.
    pub(crate) fn index(&mut self, count: usize) -> usize {
        let last = u64::try_from(count.saturating_sub(1)).unwrap_or(0);
        usize::try_from(self.between(0, last)).unwrap_or(0)
    }
}

const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_reach_both_ends_and_nothing_beyond() {
        let mut draw = Draw::new(7, 1);

        let drawn: Vec<u64> = (0..1_000).map(|_| draw.between(20, 29)).collect();

        assert!(drawn.iter().all(|value| (20..=29).contains(value)));
        assert!(drawn.contains(&20) && drawn.contains(&29));
    }

    #[test]
    fn streams_of_one_seed_differ() {
        assert_ne!(Draw::new(1, 1).bits(), Draw::new(1, 2).bits());
        assert_eq!(Draw::new(1, 1).bits(), Draw::new(1, 1).bits());
    }
}

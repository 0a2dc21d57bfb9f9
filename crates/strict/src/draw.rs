//! Seeded draws, each a pure function of seed, stream and number, so that what a request draws does not depend on which
//! other requests came before it.

/// Keeps the draws for one purpose apart from those for another.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stream {
    Latency = 1,
    Fault = 2,
    Outside = 3,
}

/// A number that looks random (SplitMix64).
fn bits(seed: u64, stream: Stream, number: u64) -> u64 {
    let mut x =
        mix(seed ^ mix(stream as u64)).wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mix(x)
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// A draw from `[0, 1)`.
pub(crate) fn unit(seed: u64, stream: Stream, number: u64) -> f64 {
    (bits(seed, stream, number) >> 11) as f64 / (1u64 << 53) as f64
}

/// A draw from `lo..=hi`.
pub(crate) fn between(seed: u64, stream: Stream, number: u64, lo: u64, hi: u64) -> u64 {
    let span = u128::from(hi.saturating_sub(lo)) + 1;
    lo + ((u128::from(bits(seed, stream, number)) * span) >> 64) as u64
}

/// The microseconds to the next event of a Poisson stream, at least 1.
pub(crate) fn poisson_gap_us(seed: u64, number: u64, per_s: f64) -> u64 {
    let gap_s = -(1.0 - unit(seed, Stream::Outside, number)).ln() / per_s;
    ((gap_s * 1e6) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_in_bounds_and_reach_both_ends() {
        let drawn: Vec<u64> = (0..1_000)
            .map(|n| between(7, Stream::Latency, n, 20, 29))
            .collect();

        assert!(drawn.iter().all(|d| (20..=29).contains(d)));
        assert!(drawn.contains(&20) && drawn.contains(&29));
    }

    #[test]
    fn equal_seeds_draw_equally_and_streams_are_apart() {
        assert_eq!(
            unit(1, Stream::Fault, 9).to_bits(),
            unit(1, Stream::Fault, 9).to_bits()
        );
        assert_ne!(
            unit(1, Stream::Fault, 9).to_bits(),
            unit(1, Stream::Latency, 9).to_bits()
        );
        assert_ne!(
            unit(1, Stream::Fault, 9).to_bits(),
            unit(2, Stream::Fault, 9).to_bits()
        );
    }

    #[test]
    fn foreign_requests_come_at_the_rate_asked_for() {
        let total: u64 = (0..20_000).map(|n| poisson_gap_us(3, n, 50.0)).sum();

        let mean_us = total / 20_000;
        assert!((19_000..21_000).contains(&mean_us), "mean gap {mean_us} us");
    }
}

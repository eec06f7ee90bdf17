//! Which queries are traced, as `OTEL_TRACES_SAMPLER` says.
//!
//! No parent reaches a query from outside, so what the specification calls parent-based comes to the sampler for roots.

use super::TraceContext;

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sampler {
    /// All of them.
    #[default]
    Always,
    /// None. Exemplars then point nowhere, so there are none either.
    Never,
    /// Those whose number, as 63 bits of the trace's, lies below this. Services that share a ratio choose the same traces.
    Below(u64),
}

impl Sampler {
    /// A share of all queries, 0 to 1. `None` for what is no share.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the product lies in 0..=2^63")]
    pub fn ratio(share: f64) -> Option<Self> {
        let bound = (share * (1_u64 << 63) as f64) as u64;
        (0.0..=1.0).contains(&share).then_some(Self::Below(bound))
    }

    #[expect(clippy::cast_possible_truncation, reason = "the lower half of the number is what the specification takes")]
    pub(super) const fn takes(self, context: TraceContext) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Below(bound) => (context.trace() as u64) >> 1 < bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_takes_about_its_share_and_the_same_trace_every_time() {
        let sampler = Sampler::ratio(0.25).unwrap();
        let contexts: Vec<TraceContext> = (0..8_000).map(|_| TraceContext::random()).collect();
        let taken = |context: &&TraceContext| sampler.takes(**context);
        let count = contexts.iter().filter(taken).count();
        // Twelve standard deviations on either side of 2000.
        assert!((1_535..2_465).contains(&count), "{count} of 8000");
        assert_eq!(contexts.iter().filter(taken).count(), count);
    }

    #[test]
    fn the_ends_are_all_and_none_and_beyond_them_is_no_share() {
        let context = TraceContext::random();
        assert!(Sampler::ratio(1.0).unwrap().takes(context) && Sampler::Always.takes(context));
        assert!(!Sampler::ratio(0.0).unwrap().takes(context) && !Sampler::Never.takes(context));
        for wrong in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Sampler::ratio(wrong), None);
        }
    }
}

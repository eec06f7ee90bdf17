//! The two numbers that tie a query's records, exemplars and requests to its trace.

use super::Stage;

/// Which trace a query is, and which span of it is the query's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    trace: u128,
    query: u64,
}

/// Odd, so that its multiples are distinct: each stage's span has a number of its own, far from the others.
const APART: u64 = 0x9e37_79b9_7f4a_7c15;

impl TraceContext {
    /// A new one. Zero is not a valid number of either kind.
    pub(crate) fn random() -> Self {
        let mut bytes = [0; 24];
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        let (trace, query) = bytes.split_at(16);
        let trace = u128::from_be_bytes(trace.try_into().expect("sixteen bytes were split off"));
        let query = u64::from_be_bytes(query.try_into().expect("eight bytes are left of twenty-four"));
        Self { trace: trace.max(1), query: query.max(1) }
    }

    /// Reads what a record carries.
    pub(crate) fn parse(trace: &str, span: &str) -> Option<Self> {
        let (trace, query) = (u128::from_str_radix(trace, 16).ok()?, u64::from_str_radix(span, 16).ok()?);
        (trace != 0 && query != 0).then_some(Self { trace, query })
    }

    /// The trace's number, 32 hexadecimal digits.
    #[must_use]
    pub fn trace_id(self) -> String {
        format!("{:032x}", self.trace)
    }

    /// The query's span, 16 hexadecimal digits.
    #[must_use]
    pub fn span_id(self) -> String {
        format!("{:016x}", self.query)
    }

    /// The trace and the span of a request to another machine, for its `traceparent`: whoever gets it hangs its spans
    /// below [`Stage::Request`]'s.
    #[must_use]
    pub fn request(self) -> (u128, u64) {
        (self.trace, self.span_of(&Stage::Request { server: String::new(), status: None }))
    }

    pub(super) const fn trace(self) -> u128 {
        self.trace
    }

    /// The trace's number as it is sent.
    pub(crate) fn trace_bytes(self) -> Vec<u8> {
        self.trace.to_be_bytes().to_vec()
    }

    /// The query's span as it is sent.
    pub(crate) fn query_bytes(self) -> Vec<u8> {
        self.query.to_be_bytes().to_vec()
    }

    /// The span of one stage. A query goes through each stage at most once.
    pub(super) fn span_of(self, stage: &Stage) -> u64 {
        let number = match stage {
            Stage::Offer => 1,
            Stage::Queue => 2,
            Stage::Reserve => 3,
            Stage::Batch => 4,
            Stage::Extract => 5,
            Stage::Request { .. } => 6,
            Stage::Decide => 7,
        };
        (self.query ^ APART.wrapping_mul(number)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_read_back_from_what_a_record_carries() {
        let context = TraceContext::random();
        assert_eq!(TraceContext::parse(&context.trace_id(), &context.span_id()), Some(context));
        assert_ne!(TraceContext::random(), context);
        for (trace, span) in [("0", "1"), ("1", "0"), ("x", "1"), ("1", "")] {
            assert_eq!(TraceContext::parse(trace, span), None);
        }
    }

    #[test]
    fn a_request_has_a_span_of_its_own_whatever_comes_of_it() {
        let context = TraceContext { trace: 0xab, query: 1 };
        let request = Stage::Request { server: "here".to_owned(), status: Some(200) };
        assert_eq!(context.request(), (0xab, context.span_of(&request)));
        assert_ne!(format!("{:016x}", context.request().1), context.span_id());
    }
}

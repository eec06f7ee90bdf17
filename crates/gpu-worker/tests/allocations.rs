//! Goal: nothing on a query's way from its samples to the session's input is allocated anew, and the samples are shared
//! and not copied.
//! Method: an allocator that counts, and the real model: after one query of a length, the next ones of that length
//! allocate a few small things and no buffer. What the runtime library allocates inside is its own and is not counted.

mod support;

use std::alloc::System;
use std::sync::Arc;

use gpu_worker::extractor::Extractor as _;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What is left a query: names, shapes and handles for the binding's call, and the vector itself, which goes to the caller.
const BYTES_MAX: usize = 4 * 1_024;
const ALLOCATIONS_MAX: usize = 16;

#[test]
fn a_query_allocates_no_buffer_for_its_samples_or_features() {
    let mut extractor = support::extractor();
    let clip = support::clip(support::signal(2, 160_000), 16_000);
    // 10 s: 320 kB of samples, 640 kB of floats, 320 kB of features.
    for _ in 0..2 {
        extractor.extract(&clip).expect("the model runs");
    }
    let region = Region::new(ALLOCATOR);
    extractor.extract(&clip).expect("the model runs");
    let change = region.change();
    println!("{change:?}");
    assert!(change.bytes_allocated < BYTES_MAX, "{change:?}");
    assert!(change.allocations + change.reallocations < ALLOCATIONS_MAX, "{change:?}");

    let region = Region::new(ALLOCATOR);
    let handed_on = clip.clone();
    assert_eq!((region.change().allocations, Arc::ptr_eq(&handed_on.pcm, &clip.pcm)), (0, true));
}

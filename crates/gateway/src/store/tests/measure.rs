//! Temporary.
use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[test]
fn measure_beside() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    for person in 0..100 {
        for sample in 0_u16..10 {
            store
                .enrol(&format!("p{person}"), &PersonChange::default(), &features(f32::from(sample) * 0.1 + 0.05), 1)
                .unwrap();
        }
    }
    let segments: Vec<SegmentRecord> = (0..100_000_u32)
        .map(|n| SegmentRecord {
            id: format!("segment-{n:08}"),
            speaker: n % 20,
            scope: format!("stream:{}", n / 10_000),
            start: f64::from(n),
            end: f64::from(n) + 1.0,
        })
        .collect();
    store.record("talk", &Page { recording: "phone".into(), segments, voices: vec![] }, 1).unwrap();
    eprintln!("bytes {}", store.size_bytes());
    for what in ["idle", "history", "delete"] {
        let stop = AtomicBool::new(false);
        let ran = std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let mut times = vec![];
                for round in 0..5 {
                    let began = Instant::now();
                    match what {
                        "history" => {
                            assert_eq!(store.history("talk").unwrap().unwrap().pages[0].segments.len(), 100_000);
                        }
                        "delete" => store.delete_person(&format!("p{round}")).unwrap(),
                        _ => std::thread::sleep(Duration::from_millis(200)),
                    }
                    times.push(began.elapsed());
                    std::thread::sleep(Duration::from_millis(50));
                }
                stop.store(true, Ordering::SeqCst);
                times
            });
            let mut asked = vec![];
            while !stop.load(Ordering::SeqCst) {
                let began = Instant::now();
                store.receipt_generation("talk").unwrap();
                asked.push(began.elapsed());
                std::thread::sleep(Duration::from_millis(1));
            }
            asked.sort();
            let at = |share: f64| asked[((asked.len() - 1) as f64 * share) as usize];
            eprintln!("{what}: n {} p50 {:?} p99 {:?} max {:?}", asked.len(), at(0.5), at(0.99), at(1.0));
            worker.join().unwrap()
        });
        eprintln!("   work {ran:?}");
    }
}

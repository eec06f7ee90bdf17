//! Goal: what waits for a collector is bounded, ordered and accounted for, whatever the collector does.
//! Method: a queue of numbers, sent to a listener of the test's own that answers as it is told; flushes instead of waiting.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

use super::*;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::SdkMeterProvider;

/// Generous: it only bounds a hanging test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A collector that answers each request with the next status, and afterwards with 200.
struct Collector {
    target: Target,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Collector {
    fn start(statuses: &'static [u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/in", listener.local_addr().unwrap());
        let bodies: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let taken = Arc::clone(&bodies);
        std::thread::spawn(move || {
            let mut statuses = statuses.iter();
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                let (mut answers, mut requests) = (stream.try_clone().unwrap(), BufReader::new(stream));
                while let Some(body) = body(&mut requests) {
                    let status = *statuses.next().unwrap_or(&200);
                    if status == 200 {
                        taken.lock().unwrap().push(body);
                    }
                    write!(answers, "HTTP/1.1 {status} So\r\nContent-Length: 0\r\n\r\n").unwrap();
                }
            }
        });
        Self { target: Target { url, headers: Vec::new(), patience: PATIENCE }, bodies }
    }

    fn taken(&self) -> Vec<Vec<u8>> {
        self.bodies.lock().unwrap().clone()
    }
}

/// The body of the first request of a connection.
pub(crate) fn body_of(stream: std::net::TcpStream) -> Vec<u8> {
    let mut answers = stream.try_clone().unwrap();
    let body = body(&mut BufReader::new(stream)).unwrap();
    answers.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    body
}

fn body(requests: &mut BufReader<std::net::TcpStream>) -> Option<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if requests.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    requests.read_exact(&mut body).ok()?;
    Some(body)
}

/// A queue of bytes, and the page that counts them.
struct Tested {
    queue: Queue<u8>,
    registry: prometheus::Registry,
    _provider: SdkMeterProvider,
}

impl Tested {
    fn start(target: &Target, queue_max: usize, batch_max: usize) -> Self {
        Self::refusing(target, queue_max, batch_max, |_| None)
    }

    fn refusing(
        target: &Target,
        queue_max: usize,
        batch_max: usize,
        refused: fn(&[u8]) -> Option<(u64, String)>,
    ) -> Self {
        let registry = prometheus::Registry::new();
        let exporter = opentelemetry_prometheus::exporter().with_registry(registry.clone()).build().unwrap();
        let provider = SdkMeterProvider::builder().with_reader(exporter).build();
        let counts = Counts::new(&provider.meter("test"));
        let limits = Limits { queue_max, batch_max, delay: Duration::from_secs(86_400) };
        let shipment = Shipment { signal: Signal::Traces, encode: Box::new(<[u8]>::to_vec), refused };
        let queue = Queue::start(target, limits, shipment, counts).unwrap();
        Self { queue, registry, _provider: provider }
    }

    fn offer(&self, items: std::ops::Range<u8>) {
        items.for_each(|item| self.queue.offer(item));
    }

    fn flush(&self) -> bool {
        all_sent(vec![self.queue.flush()], PATIENCE)
    }

    /// Sent, dropped and refused.
    fn counts(&self) -> [f64; 3] {
        let families = self.registry.gather();
        let family = families.iter().find(|family| family.name() == "rollcall_telemetry_items_total").unwrap();
        ["sent", "dropped", "refused"].map(|outcome| {
            let has = |metric: &prometheus::proto::Metric, value| {
                metric.get_label().iter().any(|label| label.value() == value)
            };
            let mut series = family.get_metric().iter();
            let found = series.find(|metric| has(metric, "traces") && has(metric, outcome)).unwrap();
            found.get_counter().get_value()
        })
    }
}

#[test]
fn everything_is_sent_in_order_in_batches_of_the_limit() {
    let collector = Collector::start(&[]);
    let tested = Tested::start(&collector.target, 100, 3);
    tested.offer(0..7);
    assert!(tested.flush());
    let taken = collector.taken();
    assert_eq!(taken.concat(), [0, 1, 2, 3, 4, 5, 6]);
    assert!(taken.iter().all(|batch| batch.len() <= 3), "{taken:?}");
    assert_eq!(tested.counts(), [7.0, 0.0, 0.0]);
}

#[test]
fn a_full_queue_drops_what_comes_and_counts_it() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let target = Target { url: format!("http://{nobody}"), headers: Vec::new(), patience: PATIENCE };
    let tested = Tested::start(&target, 4, 10);
    tested.offer(0..9);
    assert_eq!(tested.counts(), [0.0, 5.0, 0.0]);
    assert!(!tested.flush(), "nobody listens");
    assert_eq!(tested.counts(), [0.0, 5.0, 0.0], "what waits goes on waiting");
}

#[test]
fn what_was_not_taken_is_sent_again_in_its_order_and_makes_no_duplicates() {
    let collector = Collector::start(&[503, 429]);
    let tested = Tested::start(&collector.target, 100, 100);
    tested.offer(0..3);
    assert!(!tested.flush());
    tested.offer(3..5);
    assert!(!tested.flush());
    assert!(tested.flush());
    assert_eq!(collector.taken(), [[0, 1, 2, 3, 4]]);
    assert_eq!(tested.counts(), [5.0, 0.0, 0.0]);
}

#[test]
fn what_a_collector_refuses_for_good_is_counted_and_gone() {
    let collector = Collector::start(&[400]);
    let tested = Tested::start(&collector.target, 100, 100);
    tested.offer(0..3);
    assert!(!tested.flush());
    tested.offer(3..5);
    assert!(tested.flush());
    assert_eq!(collector.taken(), [[3, 4]]);
    assert_eq!(tested.counts(), [2.0, 0.0, 3.0]);
}

#[test]
fn a_part_that_is_refused_is_counted_as_such() {
    let collector = Collector::start(&[]);
    let tested = Tested::refusing(&collector.target, 100, 100, |_| Some((2, "too long".to_owned())));
    tested.offer(0..5);
    assert!(tested.flush());
    assert_eq!(tested.counts(), [3.0, 0.0, 2.0]);
}

#[test]
fn a_full_batch_goes_without_being_asked_for() {
    let collector = Collector::start(&[]);
    let tested = Tested::start(&collector.target, 100, 4);
    tested.offer(0..4);
    let since = Instant::now();
    while collector.taken().is_empty() {
        assert!(since.elapsed() < PATIENCE, "it was never sent");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(collector.taken(), [[0, 1, 2, 3]]);
}

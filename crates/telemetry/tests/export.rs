//! Goal: a collector gets the same instruments, and a collector that is down disturbs nothing.
//! Method: a real export over HTTP to a listener of the test's own, whose bytes are searched; flushes instead of waiting.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use telemetry::{Otlp, Settled, Telemetry};

/// Generous: it only bounds a hanging test.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than any test: exports happen on request alone.
const NEVER: Option<&str> = Some("86400000");

#[test]
fn the_collector_gets_the_accounts_and_our_own_instruments() {
    let (endpoint, collector) = collector("200 OK");
    let telemetry = Telemetry::start_exporting("1.2.3", &Otlp::new(&endpoint, NEVER).unwrap()).unwrap();
    telemetry.accounts().reserved();
    telemetry.accounts().settled(Settled::Failed);
    telemetry.metrics().verdict(Duration::from_millis(60), None);
    assert!(telemetry.flush(PATIENCE), "the collector answered");

    let request = collector.join().unwrap();
    let text = String::from_utf8_lossy(&request);
    assert!(text.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{}", text.lines().next().unwrap());
    assert!(text.to_ascii_lowercase().contains("content-type: application/x-protobuf"));
    for name in ["omi_speaker_id_embedding_attempts", "rollcall_verdict", "rollcall_open_queries"] {
        assert!(text.contains(name), "{name} was not exported");
    }
    assert!(telemetry.encode(None).1.contains("omi_speaker_id_embedding_attempts_total{outcome=\"failed\"} 1"));
}

#[test]
fn a_collector_that_refuses_is_told_apart_from_one_that_took_the_metrics() {
    let (endpoint, collector) = collector("503 Service Unavailable");
    let telemetry = Telemetry::start_exporting("1.2.3", &Otlp::new(&endpoint, NEVER).unwrap()).unwrap();
    assert!(!telemetry.flush(PATIENCE));
    assert!(!collector.join().unwrap().is_empty());
}

#[test]
fn a_collector_that_is_down_leaves_scrapes_as_they_are() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let telemetry = Telemetry::start_exporting("1.2.3", &Otlp::new(&format!("http://{free}"), NEVER).unwrap()).unwrap();
    telemetry.accounts().reserved();
    assert!(!telemetry.flush(PATIENCE));
    assert!(telemetry.encode(None).1.contains("omi_speaker_id_embedding_attempts_total{outcome=\"reserved\"} 1"));
}

#[test]
fn without_a_collector_there_is_nothing_to_flush() {
    assert!(Telemetry::start("1.2.3").unwrap().flush(Duration::ZERO));
}

/// A collector for one export: answers with `status`, and gives what it was sent.
fn collector(status: &'static str) -> (String, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = read_request(&mut stream);
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
        request
    });
    (endpoint, thread)
}

/// Reads a head and as much body as it announces.
fn read_request(stream: &mut TcpStream) -> Vec<u8> {
    let mut request = Vec::new();
    let mut bytes = [0; 4096];
    while !is_whole(&request) {
        let read = stream.read(&mut bytes).unwrap();
        assert!(read > 0, "the request ended early");
        request.extend(bytes.iter().take(read));
    }
    request
}

fn is_whole(request: &[u8]) -> bool {
    let Some(head) = request.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let announced = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
    request.len() >= head + 4 + announced.expect("the exporter announces its length")
}

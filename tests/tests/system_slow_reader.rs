//! Goal: a client that reads nothing loses its socket, and nobody else notices.
//! Method: a real server; a client with a small receive buffer that asks for answers without end and reads none.

use std::time::Duration;

use rollcall_tests::server::{Server, eventually};
use rollcall_tests::socket::{Client, End, start};
use rollcall_tests::sound::{OWNER, STRANGER};
use serde_json::json;
use tokio::net::TcpSocket;

/// Each asks for as many answers as it has segments: together more than every buffer on the way holds.
const MESSAGES: usize = 400;
const SEGMENTS: usize = 256;

#[tokio::test]
async fn a_client_that_does_not_read_loses_its_socket_and_its_neighbour_goes_on() {
    let server = Server::start();
    server.enrol("anna", OWNER, true);
    let mut neighbour = Client::start(&server, "neighbour", "shared").await;

    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut deaf = Client::connect_on(&server, socket).await;
    deaf.send(&start("deaf", "shared")).await;
    for _ in 0..MESSAGES {
        // The server may close at any of them, and stops reading when it does.
        if !deaf.try_text(&refused(), Duration::from_secs(1)).await {
            break;
        }
    }
    let open = || server.metrics().value("rollcall_sockets");
    eventually("the deaf client's socket is closed", || (open() == 1.0).then_some(())).await;
    assert!([End::Cut, End::Code(1008)].contains(&deaf.end().await));
    assert_eq!(server.metrics().value("rollcall_refused_total{reason=\"slow_client\"}"), 1.0);

    neighbour.speak(0, OWNER, 6.0).await;
    assert_eq!(neighbour.verdict(0).await["person_id"], "anna");
    neighbour.speak(1, STRANGER, 6.0).await;
    assert_eq!(neighbour.verdict(1).await["status"], "no_match");
    assert_eq!(neighbour.stop().await["budget"]["reserved"], 2);
}

#[tokio::test]
async fn a_client_that_says_much_at_once_and_reads_is_heard_out() {
    let server = Server::start();
    let eager = Client::start(&server, "eager", "eager").await;
    eager.converse(&vec![refused(); MESSAGES / 10], "error", MESSAGES / 10 * SEGMENTS).await;
}

/// A message whose segments are all reversed: each is answered by an error.
fn refused() -> String {
    let reversed = json!({"id": "s", "speaker": 0, "start": 2.0, "end": 1.0});
    json!({"type": "segments", "segments": vec![reversed; SEGMENTS]}).to_string()
}

//! Goal: a client that reads nothing loses its socket, and nobody else notices.
//! Method: a real server; a client with a small receive buffer that asks for answers without end and reads none.

use std::time::Duration;

use rollcall_tests::server::{Server, eventually};
use rollcall_tests::socket::{Client, End, start};
use rollcall_tests::sound::{OWNER, STRANGER};
use serde_json::{Value, json};
use tokio::net::TcpSocket;

/// Answers of a hundred bytes each: more than every buffer between the server and this client holds.
const MESSAGES: usize = 400;

#[tokio::test]
async fn a_client_that_does_not_read_loses_its_socket_and_its_neighbour_goes_on() {
    let server = Server::start();
    server.enrol("anna", OWNER, true);
    let mut neighbour = Client::start(&server, "neighbour", "shared").await;

    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut deaf = Client::connect_on(&server, socket).await;
    deaf.send(&start("deaf", "shared")).await;
    let refused: Vec<Value> = (0..256).map(|_| json!({"id": "s", "speaker": 0, "start": 2.0, "end": 1.0})).collect();
    let message = json!({"type": "segments", "segments": refused}).to_string();
    for _ in 0..MESSAGES {
        // The server may close at any of them, and stops reading when it does.
        if !deaf.try_text(&message, Duration::from_secs(1)).await {
            break;
        }
    }
    let open = || server.metrics().value("rollcall_sockets");
    eventually("the deaf client's socket is closed", || (open() == 1.0).then_some(())).await;
    assert!([End::Cut, End::Code(1008)].contains(&deaf.end().await));

    neighbour.speak(0, OWNER, 6.0).await;
    assert_eq!(neighbour.verdict(0).await["person_id"], "anna");
    neighbour.speak(1, STRANGER, 6.0).await;
    assert_eq!(neighbour.verdict(1).await["status"], "no_match");
    assert_eq!(neighbour.stop().await["budget"]["reserved"], 2);
}

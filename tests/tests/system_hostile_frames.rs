//! Goal: a frame that breaks the protocol costs its own socket and nothing else: no memory, no token, no neighbour.
//! Method: a real server; frames that no library would send; a neighbour on the same server who is heard out afterwards.

use rollcall_tests::server::Server;
use rollcall_tests::socket::{Client, End, start};
use rollcall_tests::sound::{self, OWNER, STRANGER};
use serde_json::json;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

const MIB: u64 = 1 << 20;

#[tokio::test]
async fn a_frame_that_declares_a_gibibyte_is_cut_at_its_header_and_costs_no_memory() {
    let server = Server::start();
    // The first socket pays for what all of them share.
    assert_eq!(a_gibibyte(&server).await, End::Code(1009));
    let before = server.resident_bytes();
    assert_eq!(a_gibibyte(&server).await, End::Code(1009));
    let growth = server.resident_bytes().saturating_sub(before);
    assert!(growth < 2 * MIB, "the server grew by {growth} bytes");
}

#[tokio::test]
async fn continuations_without_end_are_cut_when_they_pass_the_frame_limit() {
    let server = Server::start();
    assert_eq!(endless_continuations(&server).await, End::Code(1009));
}

#[tokio::test]
async fn a_text_frame_over_its_limit_is_cut() {
    let server = Server::start();
    assert_eq!(a_long_text(&server).await, End::Code(1009));
}

#[tokio::test]
async fn text_that_is_no_utf8_closes_its_socket_with_1007() {
    let server = Server::start();
    assert_eq!(text_that_is_no_utf8(&server).await, End::Code(1007));
}

#[tokio::test]
async fn a_frame_of_an_opcode_that_does_not_exist_closes_its_socket_with_1002() {
    let server = Server::start();
    assert_eq!(an_unknown_opcode(&server).await, End::Code(1002));
}

#[tokio::test]
async fn a_neighbour_of_hostile_sockets_goes_on_untouched() {
    let server = Server::start();
    server.enrol("anna", OWNER, true);
    let mut neighbour = Client::start(&server, "neighbour", "neighbour").await;
    neighbour.speak(0, OWNER, 6.0).await;
    assert_eq!(neighbour.verdict(0).await["person_id"], "anna");

    for _ in 0..3 {
        a_gibibyte(&server).await;
        endless_continuations(&server).await;
        a_long_text(&server).await;
        text_that_is_no_utf8(&server).await;
        an_unknown_opcode(&server).await;
    }

    neighbour.speak(1, STRANGER, 6.0).await;
    assert_eq!(neighbour.verdict(1).await["status"], "no_match");
    let goodbye = neighbour.stop().await;
    assert_eq!(
        goodbye["budget"],
        json!({"reserved": 2, "succeeded": 2, "failed": 0, "denied": {"voice": 0, "socket": 0, "both": 0}})
    );
    let page = server.metrics();
    assert_eq!((page.attempts("reserved"), page.attempts("succeeded")), (2.0, 2.0), "hostile sockets spent nothing");
}

/// The first ten bytes of a frame of 2³⁰ bytes, and some of its content.
async fn a_gibibyte(server: &Server) -> End {
    let mut client = live(server).await;
    let header = [&[0x82, 0xff][..], &(1_u64 << 30).to_be_bytes(), &[1, 2, 3, 4]].concat();
    client.raw(&header).await;
    client.end().await
}

/// Fragments of 64 KiB, each promising another.
async fn endless_continuations(server: &Server) -> End {
    let mut client = live(server).await;
    for fragment in 0..64 {
        let opcode = OpCode::Data(if fragment == 0 { Data::Binary } else { Data::Continue });
        if client.frame(Frame::message(vec![0; 64 << 10], opcode, false)).await.is_err() {
            break;
        }
    }
    client.end().await
}

async fn a_long_text(server: &Server) -> End {
    let mut client = live(server).await;
    client.text(&" ".repeat((256 << 10) + 1)).await;
    client.end().await
}

async fn text_that_is_no_utf8(server: &Server) -> End {
    let mut client = live(server).await;
    client.raw(&[0x81, 0x81, 0, 0, 0, 0, 0x99]).await;
    client.end().await
}

async fn an_unknown_opcode(server: &Server) -> End {
    let mut client = live(server).await;
    client.raw(&[0x83, 0x80, 0, 0, 0, 0]).await;
    client.end().await
}

/// A hostile socket has a recording like any other.
async fn live(server: &Server) -> Client {
    let mut client = Client::connect(server).await;
    client.send(&start("hostile", "hostile")).await;
    client.event("ready").await;
    client.audio(&sound::tone(STRANGER, 1.0)).await;
    client
}

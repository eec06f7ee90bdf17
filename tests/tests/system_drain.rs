//! Goal: a server that is told to stop says goodbye to everybody, settles what is open, and is gone in time.
//! Method: a real process, SIGTERM, sockets with queries under way, and somebody who asks after its health all the time.

use rollcall_tests::server::{Server, http};
use rollcall_tests::socket::{Client, End};
use rollcall_tests::sound::{self, OWNER, STRANGER};
use serde_json::{Value, json};

const SOCKETS: usize = 24;

/// Voices of each socket, all of which have just spoken when the signal comes.
const VOICES: u32 = 8;

#[tokio::test]
async fn a_stop_says_goodbye_to_every_socket_settles_every_query_and_exits_0_in_time() {
    let mut server = Server::start();
    server.enrol("anna", OWNER, true);
    let mut clients = Vec::new();
    for index in 0..SOCKETS {
        let name = format!("socket-{index}");
        clients.push(Client::start(&server, &name, &name).await);
    }
    for client in &mut clients {
        ask_much(client).await;
    }
    let health = Health::watch(server.address());
    server.terminate();
    for client in &mut clients {
        let goodbye = client.event("goodbye").await;
        assert_eq!(goodbye["reason"], "draining");
        assert_eq!(client.end().await, End::Code(1001));
    }
    let status = server.ended();
    assert!(status.success(), "{status}: {}", server.log());
    health.judge();
}

#[tokio::test]
async fn a_stop_of_an_idle_server_exits_0_and_its_people_are_there_after_a_restart() {
    let mut server = Server::start();
    server.enrol("anna", OWNER, true);
    server.terminate();
    assert!(server.ended().success());
    let again = server.again();
    assert_eq!(again.get("/v1/people/anna").json()["id"], "anna");
}

/// Eight voices speak, enough for a query each, and all of them are told in one message.
async fn ask_much(client: &mut Client) {
    for voice in 0..VOICES {
        client.audio(&sound::tone(STRANGER + 40 * voice, 3.0)).await;
    }
    let segments: Vec<Value> = (0..VOICES)
        .map(|voice| {
            let start = 3.0 * f64::from(voice);
            json!({"id": format!("s{voice}"), "speaker": voice, "start": start, "end": start + 3.0})
        })
        .collect();
    client.send(&json!({"type": "segments", "segments": segments})).await;
}

/// Threads that ask `/readyz` until nobody answers any more.
struct Health(Vec<std::thread::JoinHandle<Vec<u16>>>);

impl Health {
    fn watch(address: &str) -> Self {
        let ask = |address: String| {
            let ask = || http(&address, "GET", "/readyz", &[], b"").ok();
            std::iter::from_fn(ask).map(|answer| answer.status).collect()
        };
        Self((0..4).map(|_| address.to_owned()).map(|address| std::thread::spawn(move || ask(address))).collect())
    }

    /// Ready, then not ready, then gone; never ready again.
    fn judge(self) {
        let mut unready = 0;
        for thread in self.0 {
            let answers = thread.join().unwrap();
            let before = answers.iter().take_while(|status| **status == 200).count();
            let after = answers.get(before..).unwrap_or_default();
            assert!(after.iter().all(|status| *status == 503), "{answers:?}");
            unready += after.len();
        }
        assert!(unready > 0, "somebody was told 503 while the server drained");
    }
}

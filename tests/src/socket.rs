//! A client of the socket for the system tests: it can say anything, right or wrong, and every wait of it has an end.

use std::future::Future;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::server::{PATIENCE, Server};
use crate::sound;

/// See the module's text.
pub struct Client {
    socket: WebSocketStream<TcpStream>,
    samples: usize,
    segments: usize,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With a close frame of this code.
    Code(u16),
    /// Without one.
    Cut,
}

/// A wait with an end.
///
/// # Panics
/// When it takes longer than anything here should.
pub async fn within<T>(what: &str, wait: impl Future<Output = T>) -> T {
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{what}: did not happen"))
}

impl Client {
    /// A connection that has said nothing yet.
    pub async fn connect(server: &Server) -> Self {
        Self::connect_on(server, TcpSocket::new_v4().expect("a socket")).await
    }

    /// The same on a socket with its own options.
    pub async fn connect_on(server: &Server, socket: TcpSocket) -> Self {
        Self::connect_at(server.address(), socket).await
    }

    /// The same to any server's host and port.
    pub async fn connect_at(address: &str, socket: TcpSocket) -> Self {
        let peer = address.parse().expect("the server printed an address");
        let stream = within("connecting", socket.connect(peer)).await.expect("the server listens");
        let url = format!("ws://{address}/v1/listen");
        let mut request = url.into_client_request().expect("a URL");
        request.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static("rollcall.v1"));
        let (socket, _) = within("the handshake", client_async(request, stream)).await.expect("the server upgrades");
        Self { socket, samples: 0, segments: 0 }
    }

    /// A recording that is live: 16 kHz, 16-bit, with exits told.
    pub async fn start(server: &Server, recording: &str, conversation: &str) -> Self {
        Self::start_at(server.address(), recording, conversation).await
    }

    /// The same at any server's host and port.
    pub async fn start_at(address: &str, recording: &str, conversation: &str) -> Self {
        let mut client = Self::connect_at(address, TcpSocket::new_v4().expect("a socket")).await;
        client.send(&start(recording, conversation)).await;
        client.event("ready").await;
        client
    }

    /// Sends a message.
    pub async fn send(&mut self, message: &Value) {
        self.text(&message.to_string()).await;
    }

    /// Sends a text frame.
    pub async fn text(&mut self, text: &str) {
        within("sending", self.socket.send(Message::text(text))).await.expect("the server reads");
    }

    /// Sends a binary frame.
    pub async fn binary(&mut self, bytes: Vec<u8>) {
        within("sending", self.socket.send(Message::binary(bytes))).await.expect("the server reads");
    }

    /// Sends a frame that the library would not make.
    pub async fn frame(&mut self, frame: Frame) -> Result<(), Error> {
        within("sending", self.socket.send(Message::Frame(frame))).await
    }

    /// Writes bytes below the protocol.
    pub async fn raw(&mut self, bytes: &[u8]) {
        within("writing", self.socket.get_mut().write_all(bytes)).await.expect("the connection is open");
    }

    /// Sends audio in frames of 100 ms.
    pub async fn audio(&mut self, samples: &[i16]) {
        for frame in samples.chunks(1_600) {
            self.binary(sound::bytes(frame)).await;
        }
        self.samples += samples.len();
    }

    /// Speaks: a tone, and its segment. Answers the segment's id.
    pub async fn speak(&mut self, speaker: u32, hertz: u32, seconds: f64) -> String {
        let start = self.seconds();
        self.audio(&sound::tone(hertz, seconds)).await;
        self.segment(&json!(speaker), start, self.seconds()).await
    }

    /// Sends one segment. Answers its id.
    pub async fn segment(&mut self, speaker: &Value, start: f64, end: f64) -> String {
        let id = format!("segment-{}", self.segments);
        self.segments += 1;
        let segment = json!({"id": id, "speaker": speaker, "start": start, "end": end});
        self.send(&json!({"type": "segments", "segments": [segment]})).await;
        id
    }

    /// Seconds of audio sent so far.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.samples as f64 / f64::from(sound::RATE)
    }

    /// The next event of a type; others before it are passed over.
    pub async fn event(&mut self, kind: &str) -> Value {
        self.event_where(kind, |_| true).await
    }

    /// The next event of a type that satisfies a condition; others before it are passed over, and do not prolong the wait.
    pub async fn event_where(&mut self, kind: &str, holds: impl Fn(&Value) -> bool) -> Value {
        within(kind, self.find(kind, holds)).await
    }

    async fn find(&mut self, kind: &str, holds: impl Fn(&Value) -> bool) -> Value {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    let event: Value = serde_json::from_str(&text).expect("every event is JSON");
                    if event["type"] == kind && holds(&event) {
                        return event;
                    }
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("waiting for {kind}: {other:?}"),
            }
        }
    }

    /// The verdict about a voice.
    pub async fn verdict(&mut self, speaker: u32) -> Value {
        self.event_where("speaker", |event| event["speaker"] == speaker && event["status"] != "pending").await
    }

    /// The error's code and field.
    pub async fn error(&mut self) -> (String, String) {
        let error = self.event("error").await;
        let text = |field: &str| error[field].as_str().unwrap_or_default().to_owned();
        assert!(!text("message").is_empty(), "an error says what is wrong: {error}");
        (text("code"), text("field"))
    }

    /// Asks for the goodbye.
    pub async fn stop(mut self) -> Value {
        self.send(&json!({"type": "stop"})).await;
        let goodbye = self.event("goodbye").await;
        assert_eq!(self.end().await, End::Code(1000));
        goodbye
    }

    /// Sends messages as fast as they are taken, and reads at the same time until `answers` events of a type have come.
    pub async fn converse(self, messages: &[String], kind: &str, answers: usize) {
        let (mut sink, mut stream) = self.socket.split();
        let speaking = async {
            for message in messages {
                within("sending", sink.send(Message::text(message.clone()))).await.expect("the server reads");
            }
        };
        let reading = async {
            let mut missing = answers;
            while missing > 0 {
                match within(kind, stream.next()).await {
                    Some(Ok(Message::Text(text))) => missing -= usize::from(is_a(&text, kind)),
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    other => panic!("{missing} of {answers} {kind} events to come: {other:?}"),
                }
            }
        };
        tokio::join!(speaking, reading);
    }

    /// Reads to the end of the connection.
    pub async fn end(&mut self) -> End {
        loop {
            match within("the end", self.socket.next()).await {
                Some(Ok(Message::Close(Some(frame)))) => return End::Code(frame.code.into()),
                Some(Ok(Message::Close(None))) | Some(Err(_)) | None => return End::Cut,
                Some(Ok(_)) => {}
            }
        }
    }

    /// Whether a text frame can still be sent within a short time. A server that does not read takes none.
    pub async fn try_text(&mut self, text: &str, wait: std::time::Duration) -> bool {
        matches!(timeout(wait, self.socket.send(Message::text(text))).await, Ok(Ok(())))
    }
}

fn is_a(text: &str, kind: &str) -> bool {
    let event: Value = serde_json::from_str(text).expect("every event is JSON");
    event["type"] == kind
}

/// A `start` message: 16 kHz, 16-bit, with exits told.
#[must_use]
pub fn start(recording: &str, conversation: &str) -> Value {
    json!({
        "type": "start",
        "recording_id": recording,
        "conversation_id": conversation,
        "audio": {"encoding": "pcm_s16le", "sample_rate": sound::RATE, "channels": 1},
        "verbose": true,
    })
}

//! Pages of the console beside the load, `--pages N`: clients of the feed, each with a live conversation chosen, as an open
//! page is, and what they add to the server's CPU.
//!
//! The time with them lies between two times without, so that whatever else changes meanwhile falls out of the difference.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::rc::Rc;

use serde::Serialize;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use super::server::Child;
use super::{Plan, SocketsError};

/// What open pages cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pages {
    /// Pages at once.
    pub pages: u32,
    /// The server's CPU seconds a second with them.
    pub cpu_cores: f64,
    /// ... and without, before and after.
    pub cpu_cores_without: f64,
    /// The part of a core that one page takes.
    pub cores_a_page: f64,
    /// Bytes a second that one page is sent.
    pub bytes_per_s_a_page: f64,
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = 100.0 * self.cores_a_page;
        let (with, without, bytes) = (self.cpu_cores, self.cpu_cores_without, self.bytes_per_s_a_page / 1024.0);
        write!(
            f,
            "{}: {percent:.2} % of a core each ({with:.3} cores, {without:.3} without), {bytes:.1} KiB/s each",
            self.pages
        )
    }
}

/// Measures for three times the plan's steady time, while the load goes on.
pub(super) async fn measure(plan: &Plan, child: &Child) -> Result<Pages, SocketsError> {
    let before = cores(plan, child).await?;
    let read = Rc::new(Cell::new(0));
    let address = child.address()?;
    let host = address.url().trim_start_matches("http://").to_owned();
    let mut open = Vec::new();
    for page in 0..plan.pages {
        // Each looks at another conversation, as different people do.
        let conversation = format!("bench-{}", page % plan.sockets);
        let stream = ask(&host, &conversation).await.map_err(unreadable)?;
        open.push(tokio::task::spawn_local(follow(stream, read.clone())));
    }
    let started = Instant::now();
    let with = cores(plan, child).await?;
    let (bytes, seconds) = (f64::from(u32::try_from(read.get()).unwrap_or(u32::MAX)), started.elapsed().as_secs_f64());
    let all_open = open.iter().all(|page| !page.is_finished());
    open.iter().for_each(tokio::task::JoinHandle::abort);
    let after = cores(plan, child).await?;
    if !all_open || read.get() == 0 {
        return Err(SocketsError::Unreadable("a page lost its feed".to_owned()));
    }
    let (pages, cpu_cores_without) = (f64::from(plan.pages), f64::midpoint(before, after));
    Ok(Pages {
        pages: plan.pages,
        cpu_cores: with,
        cpu_cores_without,
        cores_a_page: (with - cpu_cores_without) / pages,
        bytes_per_s_a_page: bytes / seconds / pages,
    })
}

async fn cores(plan: &Plan, child: &Child) -> Result<f64, SocketsError> {
    let (before, started) = (child.usage()?, Instant::now());
    sleep(plan.steady).await;
    Ok((child.usage()?.cpu - before.cpu).as_secs_f64() / started.elapsed().as_secs_f64())
}

fn unreadable(error: io::Error) -> SocketsError {
    SocketsError::Unreadable(format!("/v1/watch: {error}"))
}

/// Opens the feed, as a browser does.
async fn ask(host: &str, conversation: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(host).await?;
    let request = format!(
        "GET /v1/watch?conversation_id={conversation} HTTP/1.1\r\nhost: {host}\r\naccept: text/event-stream\r\n\r\n"
    );
    stream.writable().await?;
    // A fresh connection's buffer holds far more than these few bytes.
    let written = stream.try_write(request.as_bytes())?;
    if written == request.len() { Ok(stream) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Reads as long as something comes; ends when the feed does.
async fn follow(stream: TcpStream, read: Rc<Cell<u64>>) {
    let mut buffer = [0; 16 << 10];
    while stream.readable().await.is_ok() {
        match stream.try_read(&mut buffer) {
            Ok(0) => return,
            Ok(bytes) => read.set(read.get() + bytes as u64),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

//! The TCP connection below a WebSocket: a client that stops reading is cut, for nothing above can.

use std::any::Any;
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Extensions;
use socket2::{SockRef, Socket};
use tokio::net::TcpStream;

/// How long sent bytes may stay unacknowledged: a peer that vanished without a word is noticed then.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(20);

/// A handle that can end the connection. It holds a second descriptor of it.
#[derive(Clone)]
pub struct Connection(Arc<Socket>);

impl Connection {
    /// Ends the connection at once.
    pub fn shut(&self) {
        // It may have ended by itself.
        self.0.shutdown(Shutdown::Both).ok();
    }
}

/// For `HttpServer::on_connect`: remembers the connection for the handler that upgrades it.
pub fn remember(stream: &dyn Any, data: &mut Extensions) {
    let Some(stream) = stream.downcast_ref::<TcpStream>() else { return };
    let socket = SockRef::from(stream);
    // A system that refuses the option still has the pings and the write time-out.
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX)).ok();
    socket.set_tcp_nodelay(true).ok();
    if let Ok(socket) = socket.try_clone() {
        data.insert(Connection(Arc::new(socket)));
    }
}

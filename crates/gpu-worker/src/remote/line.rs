//! One client's connections, which another thread may cut: for one query, after which it goes on, or for good.
//!
//! It holds no lock while anything is asked, so cutting waits for nobody. What a cut means for the query is said by
//! whoever asked.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ureq::Agent;
use ureq::config::Config;

pub(super) struct Line {
    config: Config,
    state: Mutex<State>,
}

enum State {
    /// The agent's sockets are in use, or wait to be used again.
    Open(Agent),
    /// Nothing is asked until [`Line::mend`].
    Cut,
    /// Nothing is asked any more.
    Closed,
}

impl Line {
    pub(super) fn new(config: Config) -> Self {
        let state = Mutex::new(State::Open(config.new_agent()));
        Self { config, state }
    }

    /// What to ask with; none while the line is cut.
    pub(super) fn agent(&self) -> Option<Agent> {
        match &*self.state() {
            State::Open(agent) => Some(agent.clone()),
            State::Cut | State::Closed => None,
        }
    }

    /// Shuts every socket down, so that whatever waits for one fails at once, and keeps new ones from being made. A
    /// connection that is just being made fails when it is there.
    pub(super) fn cut(&self) {
        let mut state = self.state();
        if let State::Open(agent) = &*state {
            agent.clone().shutdown();
            *state = State::Cut;
        }
    }

    /// Goes on after a cut.
    pub(super) fn mend(&self) {
        let mut state = self.state();
        if let State::Cut = *state {
            *state = State::Open(self.config.new_agent());
        }
    }

    /// As [`Line::cut`], for good.
    pub(super) fn close(&self) {
        self.cut();
        *self.state() = State::Closed;
    }

    /// No invariant spans two statements, so a panic under the lock spoils nothing.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_is_mended_and_one_that_was_closed_is_not() {
        let line = Line::new(Agent::config_builder().build());
        line.mend();
        assert!(line.agent().is_some());
        line.cut();
        assert!(line.agent().is_none());
        line.cut();
        line.mend();
        assert!(line.agent().is_some());
        line.close();
        line.mend();
        line.cut();
        assert!(line.agent().is_none());
    }

    #[test]
    fn an_agent_that_was_handed_out_before_the_cut_asks_nobody() {
        let line = Line::new(Agent::config_builder().build());
        let agent = line.agent().unwrap();
        line.cut();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        assert!(agent.get(url).call().is_err(), "the socket is shut down as soon as it is there");
    }
}

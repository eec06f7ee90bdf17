//! What is said to an endpoint: the questions that a worker and an endpoint's keeper ask, in either protocol.
//!
//! It owns a client, the front end and the buffers in between, and belongs to one thread. Which endpoint is asked, and
//! what its answer means for it, is decided elsewhere. Every vector that leaves here has the model's size, is finite and
//! points somewhere.

use std::time::Instant;

use matcher_core::{BadVector, Embedding};

use crate::engine::Clip;
use crate::extractor::ExtractError;
use crate::front_end::{Encoder, FrontEnd, Shape};
use crate::manifest::Manifest;
use crate::onnx::mean;

use super::config::{Plan, Speech};
use super::embedding;
use super::fault::Fault;
use super::http::{Answer, Client, Place, Request};
use super::open_inference::{Encoded, Input, Ports, Wanted};

/// An endpoint as a probe found it.
#[derive(Debug)]
pub(super) struct Reach {
    pub(super) place: Place,
    /// Where to post a clip.
    path: String,
    /// What the server's model takes and gives; none where the protocol does not say.
    ports: Option<Ports>,
}

type Header<'a> = (&'static str, &'a str);

pub(super) struct Asker {
    client: Client,
    speech: Speech,
    input: Input,
    dimension: usize,
    encoder: Encoder,
    /// The prepared clip.
    shape: Shape,
    values: Vec<f32>,
    body: Vec<u8>,
}

impl Asker {
    pub(super) fn new(plan: &Plan, manifest: &Manifest) -> Self {
        let input = match (manifest.front_end, manifest.front_end.columns()) {
            (_, None) => Input::Wave,
            (FrontEnd::LibrosaMel40(_), Some(width)) => Input::Parts(width),
            (FrontEnd::KaldiFbank80Cmn(_) | FrontEnd::Waveform(_), Some(width)) => Input::Rows(width),
        };
        Self {
            client: Client::new(plan.connect),
            speech: plan.speech.clone(),
            input,
            dimension: manifest.dimension,
            encoder: Encoder::new(manifest.front_end),
            shape: Shape { parts: 1, length: 0 },
            values: Vec::new(),
            body: Vec::new(),
        }
    }

    /// The means to end its exchanges from another thread.
    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Computes what does not depend on the endpoint. [`Asker::ask`] sends it.
    pub(super) fn prepare(&mut self, clip: &Clip) -> Result<(), ExtractError> {
        self.values.clear();
        match &self.speech {
            Speech::Embedding => embedding::check(clip),
            Speech::OpenInference { .. } => {
                self.shape = self.encoder.append(clip, &mut self.values)?;
                Ok(())
            }
        }
    }

    /// Sends the prepared clip, and the trace that it belongs to, and reads its vector.
    pub(super) fn ask(
        &mut self,
        reach: &Reach,
        (clip, traceparent): (&Clip, Option<&str>),
        by: Instant,
    ) -> Result<Vec<f32>, Fault> {
        let trace = traceparent.map(|parent| ("traceparent", parent));
        let vector = match &reach.ports {
            Some(ports) => {
                let left = by.saturating_duration_since(Instant::now());
                let left_us = u64::try_from(left.as_micros()).unwrap_or(u64::MAX);
                let encoded = Encoded { input: self.input, shape: self.shape, values: &self.values };
                let head = ports.write(encoded, left_us, &mut self.body).to_string();
                let headers =
                    [("Content-Type", "application/octet-stream"), ("Inference-Header-Content-Length", head.as_str())];
                self.average(ports.read(&self.exchange(reach, (&headers, trace), by)?)?)?
            }
            None => {
                let kind = embedding::write(clip, &mut self.body);
                embedding::read(&self.exchange(reach, (&[("Content-Type", kind.as_str())], trace), by)?.body)?
            }
        };
        Embedding::of_size(&vector, self.dimension)?;
        Ok(vector)
    }

    /// One vector of those of the parts.
    fn average(&self, vectors: Vec<f32>) -> Result<Vec<f32>, Fault> {
        let Shape { parts, .. } = self.shape;
        if parts == 1 {
            return Ok(vectors);
        }
        let (found, expected) = (vectors.len(), parts * self.dimension);
        if found != expected {
            return Err(BadVector::WrongSize { expected, found }.into());
        }
        Ok(mean(&vectors, self.dimension))
    }

    fn exchange(
        &self,
        reach: &Reach,
        (headers, trace): (&[Header<'_>], Option<Header<'_>>),
        by: Instant,
    ) -> Result<Answer, Fault> {
        let with_trace: Vec<Header<'_>>;
        let headers = match trace {
            None => headers,
            Some(trace) => {
                with_trace = headers.iter().copied().chain([trace]).collect();
                &with_trace
            }
        };
        let request = Request { path: &reach.path, headers, body: Some(&self.body) };
        self.client.exchange(&reach.place, &request, by)
    }

    /// Whether the server says that it is ready, where the protocol lets one ask.
    pub(super) fn check(&self, place: &Place, root: &str, by: Instant) -> Result<(), Fault> {
        let Speech::OpenInference { model, .. } = &self.speech else { return Ok(()) };
        for path in [format!("{root}/v2/health/ready"), format!("{root}/v2/models/{model}/ready")] {
            self.get(place, &path, by)?;
        }
        Ok(())
    }

    /// Whether [`Asker::check`] asks anything.
    pub(super) fn can_check(&self) -> bool {
        matches!(self.speech, Speech::OpenInference { .. })
    }

    /// Finds out how the endpoint is to be asked. `root` is its configured path.
    pub(super) fn reach(&self, place: Place, root: &str, by: Instant) -> Result<Reach, Fault> {
        let Speech::OpenInference { model, input, output } = &self.speech else {
            return Ok(Reach {
                place,
                path: if root.is_empty() { "/".to_owned() } else { root.to_owned() },
                ports: None,
            });
        };
        let metadata = self.get(&place, &format!("{root}/v2/models/{model}"), by)?;
        let wanted = Wanted { input: input.as_deref(), output: output.as_deref() };
        let ports = Ports::of(&metadata, &wanted, self.input, self.dimension)?;
        Ok(Reach { place, path: format!("{root}/v2/models/{model}/infer"), ports: Some(ports) })
    }

    fn get(&self, place: &Place, path: &str, by: Instant) -> Result<Vec<u8>, Fault> {
        let request = Request { path, headers: &[], body: None };
        let answer = self.client.exchange(place, &request, by).map_err(Fault::not_the_clips)?;
        Ok(answer.body)
    }
}

//! Builds an extractor for each worker of a pool, on the provider and the device that it is given.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use matcher_core::Embedding;

use super::form::{self, Form};
use super::{Model, OnnxExtractor, Site};
use crate::engine::Clip;
use crate::extractor::{BuildError, Extractor, Factory};
use crate::fbank;
use crate::front_end::FrontEnd;
use crate::pool::Settings;
use crate::provider::{self, Options, Provider, ProviderError, Taken};
use crate::resample;
use crate::runtime::Runtime;
use crate::tuning::Tuning;

/// How long a worker may take to build where TensorRT makes an engine. Minutes are usual; it is kept for the next time.
const ENGINE_MAX: Duration = Duration::from_secs(20 * 60);
/// How far a device's voiceprint may lie from the processors': a tenth of the shipped margin. Sixteen bits between the layers
/// move one by 5e-5, and eight by 0.006 (docs/decisions/0013); what is computed wrongly has nothing in common, which is
/// about 1.
const DEVICE_DISTANCE_MAX: f64 = 0.01;

/// Builds an extractor for each worker of a pool.
#[derive(Clone)]
pub struct OnnxFactory {
    runtime: &'static Runtime,
    model: Arc<Model>,
    taken: Taken,
    devices: Vec<u16>,
    /// Found out by the first worker that is built, and good for all.
    form: Arc<OnceLock<Form>>,
}

impl OnnxFactory {
    /// Extractors of `model` on `runtime` and the processors.
    #[must_use]
    pub fn new(runtime: &'static Runtime, model: Model) -> Self {
        let taken = Taken { provider: Provider::Cpu, instead: None };
        Self { runtime, model: Arc::new(model), taken, devices: vec![0], form: Arc::default() }
    }

    /// Extractors of `model` on what `options` ask for. A provider other than the processors is tried once with the
    /// model on each device, and must give the processors' voiceprints. That takes as long as loading it and a first run:
    /// some seconds, and minutes where TensorRT builds its engine for the first time.
    ///
    /// # Errors
    /// When the runtime does not offer what was asked for by name, it does not work, or the devices make no sense.
    pub fn on(runtime: &'static Runtime, model: Model, options: &Options) -> Result<Self, ProviderError> {
        let works = |provider: Provider| {
            provider.prepare(runtime);
            for device in options.devices_of(provider).map_err(|error| error.to_string())? {
                agrees(runtime, &model, Site { provider, device, ..Site::default() })?;
            }
            Ok(())
        };
        let library = runtime.library().display().to_string();
        let taken = provider::take(options.choice, |provider| provider.is_offered(runtime), works, &library)?;
        let devices = options.devices_of(taken.provider)?;
        match &taken.instead {
            Some(why) => tracing::warn!(provider = taken.provider.name(), why, "the model runs on the processors"),
            None => tracing::info!(provider = taken.provider.name(), ?devices, "the model's provider was taken"),
        }
        Ok(Self { runtime, model: Arc::new(model), taken, devices, form: Arc::default() })
    }

    /// The provider that was taken.
    #[must_use]
    pub fn taken(&self) -> Provider {
        self.taken.provider
    }

    /// What the manifest says about running the model there.
    #[must_use]
    pub fn tuning(&self) -> Tuning {
        self.model.manifest().tuning.get(&self.taken.provider).copied().unwrap_or_default()
    }

    /// `settings` with the model's own for this provider: one worker a device, and runs of several clips where they pay.
    #[must_use]
    pub fn tuned(&self, settings: Settings) -> Settings {
        let tuning = self.tuning();
        let workers = match self.taken.provider {
            Provider::Cpu => settings.workers,
            Provider::Cuda | Provider::TensorRt => self.devices.len().try_into().unwrap_or(settings.workers),
        };
        let build_max = match self.taken.provider {
            Provider::Cpu | Provider::Cuda => settings.build_max,
            Provider::TensorRt => settings.build_max.max(ENGINE_MAX),
        };
        Settings { workers, batch_max: tuning.batch_max, batch_wait: tuning.batch_wait(), build_max, ..settings }
    }

    /// In which form of its graph the model runs. The first call loads the model twice, which takes half a second.
    #[must_use]
    pub fn form(&self) -> Form {
        *self.form.get_or_init(|| form::best(self.runtime, &self.model, self.taken.provider))
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Where and how the first worker runs.
    #[must_use]
    pub fn site(&self) -> Site {
        self.site_of(0)
    }

    fn site_of(&self, worker: usize) -> Site {
        let device = self.devices.iter().cycle().nth(worker % self.devices.len().max(1)).copied().unwrap_or(0);
        Site { provider: self.taken.provider, device, threads: self.tuning().threads, form: self.form() }
    }
}

impl Factory for OnnxFactory {
    fn build(&self) -> Result<Box<dyn Extractor>, BuildError> {
        self.build_for(0)
    }

    fn build_for(&self, worker: usize) -> Result<Box<dyn Extractor>, BuildError> {
        Ok(Box::new(OnnxExtractor::open_on(self.runtime, &self.model, self.site_of(worker))?))
    }

    /// Frames, or samples where the model takes those. A clip that is cut into parts is a batch already.
    fn shape_of(&self, clip: &Clip) -> Option<usize> {
        let front_end = self.model.manifest().front_end;
        let samples = resample::length_of(clip.pcm.len(), clip.sample_rate.get(), front_end.sample_rate());
        match front_end {
            FrontEnd::KaldiFbank80Cmn(_) => Some(fbank::frames_of(samples)),
            FrontEnd::Waveform(_) => Some(samples),
            FrontEnd::LibrosaMel40(_) => None,
        }
    }

    fn provider(&self) -> &'static str {
        self.taken.provider.name()
    }

    fn instead(&self) -> Option<String> {
        self.taken.instead.clone()
    }
}

/// Whether a model gives the same voiceprint at `site` as on the processors.
fn agrees(runtime: &'static Runtime, model: &Model, site: Site) -> Result<(), String> {
    let clip = form::noise(3 * fbank::RATE);
    let print_at = |site| -> Result<Embedding, String> {
        let mut extractor = OnnxExtractor::open_on(runtime, model, site).map_err(|error| error.to_string())?;
        let vector = extractor.extract(&clip).map_err(|error| error.to_string())?;
        Embedding::new(&vector).map_err(|error| error.to_string())
    };
    match print_at(site)?.distance(&print_at(Site::default())?) {
        Some(distance) if distance <= DEVICE_DISTANCE_MAX => Ok(()),
        distance => Err(format!("its voiceprint of a clip is {distance:?} from the one of the processors")),
    }
}

//! On what a model runs: the runtime's execution providers, what is asked for, what there is, and what was taken.
//!
//! A provider that is asked for by name is taken or the pool does not start; only [`Choice::Auto`] falls back to the CPU,
//! and says so. The processors of the machine are always there; the others come with the runtime library.

mod engines;
mod libraries;

use std::fmt;
use std::str::FromStr;

use ort::ep::{self, ExecutionProvider as _, ExecutionProviderDispatch};
use serde::{Deserialize, Serialize};

use crate::runtime::Runtime;

pub(crate) use engines::Engines;

/// More devices than one machine holds; beyond it the list is surely a slip of the pen.
const DEVICES_MAX: usize = 64;

/// What a model runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// This machine's processors.
    Cpu,
    /// NVIDIA graphics processors through CUDA.
    Cuda,
    /// NVIDIA graphics processors through TensorRT, with CUDA for what it cannot do.
    TensorRt,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Choice {
    /// The fastest that works: TensorRT is never taken unasked, because it builds its engines for minutes.
    Auto,
    /// The processors.
    #[default]
    Cpu,
    /// CUDA, or no start.
    Cuda,
    /// TensorRT, or no start.
    TensorRt,
}

/// What is asked for, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The provider.
    pub choice: Choice,
    /// The devices by their index, one worker each. None: device 0. On the CPU there is nothing to choose.
    pub devices: Vec<u16>,
}

/// Why a provider cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// There is no such provider.
    #[error("there is no provider `{0}`; there are auto, cpu, cuda and tensorrt")]
    Unknown(String),
    /// The runtime was built without it.
    #[error(
        "the runtime `{runtime}` does not offer {asked}; install the library of onnxruntime-gpu and name it in \
         extraction.runtime, or take the provider `auto` or `cpu`"
    )]
    NotOffered {
        /// What was asked for.
        asked: Provider,
        /// The library.
        runtime: String,
    },
    /// The runtime offers it, and no session can be made with it.
    #[error("{asked} does not work here: {reason}; {mend}, or take the provider `auto` or `cpu`")]
    Broken {
        /// What was asked for.
        asked: Provider,
        /// What the runtime said.
        reason: String,
        /// What to do about it.
        mend: &'static str,
    },
    /// The devices make no sense.
    #[error("`devices` must name up to 64 devices, each once")]
    Devices,
}

impl Provider {
    /// Its name in the configuration, in `/readyz` and in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::TensorRt => "tensorrt",
        }
    }

    /// Whether the loaded runtime was built with it. That says nothing about drivers and devices.
    #[must_use]
    pub fn is_offered(self, _by: &'static Runtime) -> bool {
        match self {
            Self::Cpu => true,
            Self::Cuda => ep::CUDA::is_available().unwrap_or(false),
            Self::TensorRt => ep::TensorRT::is_available().unwrap_or(false),
        }
    }

    /// Loads what it needs and what lies beside the runtime. What is missing is missed when a session is made.
    pub(crate) fn prepare(self, runtime: &'static Runtime) {
        libraries::preload(runtime.library(), self);
    }

    /// What a session is told. Whatever cannot be registered is an error and no silent fallback. `engines` are TensorRT's.
    pub(crate) fn dispatches(self, device: u16, engines: Option<&Engines>) -> Vec<ExecutionProviderDispatch> {
        let device = i32::from(device);
        // Every clip has another length. The usual search would try every algorithm of each of two hundred convolutions for
        // every new one, within the query; and memory that doubles with each is soon all there is.
        let cuda = || {
            let provider = ep::CUDA::default().with_device_id(device);
            let provider = provider.with_conv_algorithm_search(ep::cuda::ConvAlgorithmSearch::Heuristic);
            let provider = provider.with_arena_extend_strategy(ep::ArenaExtendStrategy::SameAsRequested);
            provider.build().error_on_failure()
        };
        match self {
            Self::Cpu => Vec::new(),
            Self::Cuda => vec![cuda()],
            Self::TensorRt => {
                let provider = ep::TensorRT::default().with_device_id(device);
                let provider = match engines {
                    Some(engines) => engines.tell(provider),
                    None => provider,
                };
                vec![provider.build().error_on_failure(), cuda()]
            }
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Choice {
    type Err = ProviderError;

    fn from_str(text: &str) -> Result<Self, ProviderError> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda),
            "tensorrt" => Ok(Self::TensorRt),
            other => Err(ProviderError::Unknown(other.to_owned())),
        }
    }
}

impl Options {
    /// Whether the devices make sense. Whether they are there is found out by [`crate::onnx::OnnxFactory::on`].
    ///
    /// # Errors
    /// When one is named twice, or there are too many.
    pub fn check(&self) -> Result<(), ProviderError> {
        let mut devices = self.devices.clone();
        devices.sort_unstable();
        devices.dedup();
        let fine = devices.len() == self.devices.len() && devices.len() <= DEVICES_MAX;
        fine.then_some(()).ok_or(ProviderError::Devices)
    }

    /// The devices of `provider`: at least one.
    pub(crate) fn devices_of(&self, provider: Provider) -> Result<Vec<u16>, ProviderError> {
        self.check()?;
        Ok(match provider {
            Provider::Cpu => vec![0],
            Provider::Cuda | Provider::TensorRt if self.devices.is_empty() => vec![0],
            Provider::Cuda | Provider::TensorRt => self.devices.clone(),
        })
    }
}

/// What was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) provider: Provider,
    /// Why it is not the one that `auto` would rather have had.
    pub(crate) instead: Option<String>,
}

/// Decides. `offers` says what the runtime was built with; `works` tries one and says what is wrong with it.
pub(crate) fn take(
    choice: Choice,
    offers: impl Fn(Provider) -> bool,
    works: impl Fn(Provider) -> Result<(), String>,
    runtime: &str,
) -> Result<Taken, ProviderError> {
    let taken = |provider| Ok(Taken { provider, instead: None });
    let works = |provider| works(provider).map_err(|said| libraries::in_short(&said));
    let insist = |asked| {
        if !offers(asked) {
            return Err(ProviderError::NotOffered { asked, runtime: runtime.to_owned() });
        }
        works(asked).map_err(|reason| ProviderError::Broken { asked, mend: libraries::mend(&reason), reason })?;
        taken(asked)
    };
    match choice {
        Choice::Cpu => taken(Provider::Cpu),
        Choice::Cuda => insist(Provider::Cuda),
        Choice::TensorRt => insist(Provider::TensorRt),
        // A runtime for processors alone is no loss to speak of: nobody installed anything else.
        Choice::Auto if !offers(Provider::Cuda) => taken(Provider::Cpu),
        Choice::Auto => match works(Provider::Cuda) {
            Ok(()) => taken(Provider::Cuda),
            Err(reason) => {
                let mend = libraries::mend(&reason);
                let instead = Some(format!("cuda does not work here, and the CPU was taken: {reason}; {mend}"));
                Ok(Taken { provider: Provider::Cpu, instead })
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Choice; 4] = [Choice::Auto, Choice::Cpu, Choice::Cuda, Choice::TensorRt];

    fn taken(choice: Choice, offered: bool, works: bool) -> Result<Taken, String> {
        let works = |_| if works { Ok(()) } else { Err("no device".to_owned()) };
        take(choice, |_| offered, works, "lib.so").map_err(|error| error.to_string())
    }

    #[test]
    fn a_provider_that_works_is_taken_and_auto_takes_cuda() {
        let providers = ALL.map(|choice| taken(choice, true, true).unwrap().provider.name());
        assert_eq!(providers, ["cuda", "cpu", "cuda", "tensorrt"]);
    }

    #[test]
    fn one_that_the_runtime_does_not_offer_is_refused_with_the_mend_and_auto_goes_on_without() {
        for choice in [Choice::Cuda, Choice::TensorRt] {
            let error = taken(choice, false, true).unwrap_err();
            assert!(error.contains("lib.so") && error.contains("onnxruntime-gpu"), "{error}");
        }
        for choice in [Choice::Auto, Choice::Cpu] {
            assert_eq!(taken(choice, false, false), Ok(Taken { provider: Provider::Cpu, instead: None }));
        }
    }

    #[test]
    fn one_that_does_not_work_is_refused_and_auto_says_what_it_took_instead() {
        for choice in [Choice::Cuda, Choice::TensorRt] {
            assert!(taken(choice, true, false).unwrap_err().contains("no device"));
        }
        let auto = taken(Choice::Auto, true, false).unwrap();
        assert_eq!(auto.provider, Provider::Cpu);
        assert!(auto.instead.unwrap().contains("no device"));
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for (choice, name) in ALL.into_iter().zip(["auto", "cpu", "cuda", "tensorrt"]) {
            assert_eq!(name.parse(), Ok(choice));
        }
        assert!("gpu".parse::<Choice>().unwrap_err().to_string().contains("tensorrt"));
    }

    #[test]
    fn devices_are_used_in_the_order_in_which_they_are_named_and_none_twice() {
        let devices = |devices: &[u16], provider| {
            Options { devices: devices.to_vec(), ..Options::default() }.devices_of(provider)
        };
        assert_eq!(devices(&[], Provider::Cuda), Ok(vec![0]));
        assert_eq!(devices(&[3, 1], Provider::TensorRt), Ok(vec![3, 1]));
        assert_eq!(devices(&[3, 1], Provider::Cpu), Ok(vec![0]));
        assert_eq!(devices(&[1, 1], Provider::Cuda), Err(ProviderError::Devices));
    }
}

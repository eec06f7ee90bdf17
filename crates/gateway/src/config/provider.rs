//! The settings of execution providers as the worker takes them, and what can be wrong with them. Whether there is such a
//! provider on this machine is the worker's to say.

use gpu_worker::provider::{Choice, Options};

use super::{Config, ConfigError};

impl Config {
    /// What the model is to run on.
    ///
    /// # Errors
    /// Names the field that is wrong, its value and what is allowed.
    pub fn provider(&self) -> Result<Options, ConfigError> {
        let extraction = &self.extraction;
        let choice: Choice = extraction.provider.parse().map_err(|_| {
            let trouble =
                format!("is {:?}; it can be \"auto\", \"cpu\", \"cuda\" or \"tensorrt\"", extraction.provider);
            ConfigError::new("extraction.provider", trouble)
        })?;
        let device = |text: &str| {
            text.trim().parse().map_err(|_| {
                let trouble = format!("has {text:?}, which is no device's number; for example \"0,1\"");
                ConfigError::new("extraction.devices", trouble)
            })
        };
        let devices = extraction.devices.as_deref().map(|devices| devices.split(',').map(device).collect());
        let options = Options { choice, devices: devices.transpose()?.unwrap_or_default() };
        options.check().map_err(|error| ConfigError::new("extraction.devices", error.to_string()))?;
        Ok(options)
    }
}

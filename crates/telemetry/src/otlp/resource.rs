//! Who sends: the resource of every metric, span and record, by the semantic conventions.
//!
//! `service.name`, `service.version` and `service.instance.id` are always there; the environment adds to them, and what
//! it says goes before what is known here.

use opentelemetry::KeyValue;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource as Proto;

use super::text;

/// The name of the one scope that everything is measured in.
const SCOPE: &str = "rollcall";

/// See the module's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resource {
    attributes: Vec<(String, String)>,
    version: String,
}

impl Resource {
    /// This process at this version, as `named` completes it.
    pub(crate) fn new(version: &str, named: &[(String, String)]) -> Self {
        let own = [("service.name", SCOPE.to_owned()), ("service.version", version.to_owned())];
        let own = own.into_iter().chain([("service.instance.id", instance())]);
        let mut attributes = named.to_vec();
        for (key, value) in own {
            if !attributes.iter().any(|(name, _)| name == key) {
                attributes.push((key.to_owned(), value));
            }
        }
        Self { attributes, version: version.to_owned() }
    }

    pub(crate) fn sdk(&self) -> opentelemetry_sdk::Resource {
        let attributes = self.attributes.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
        opentelemetry_sdk::Resource::builder_empty().with_attributes(attributes).build()
    }

    pub(crate) fn proto(&self) -> Proto {
        let attributes = self.attributes.iter().map(|(key, value)| text(key, value)).collect();
        Proto { attributes, ..Proto::default() }
    }

    pub(crate) fn scope(&self) -> InstrumentationScope {
        InstrumentationScope {
            name: SCOPE.to_owned(),
            version: self.version.clone(),
            ..InstrumentationScope::default()
        }
    }
}

/// A random UUID: another one for each process, as the conventions ask.
fn instance() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    let random = u128::from_be_bytes(bytes);
    // Version 4, variant 1.
    let uuid = random & !(0xf << 76) & !(0b11 << 62) | 4 << 76 | 0b10 << 62;
    let text = format!("{uuid:032x}");
    let part = |from, to| text.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'a>(resource: &'a Resource, key: &str) -> Vec<&'a str> {
        let values = resource.attributes.iter().filter(|(name, _)| name == key);
        values.map(|(_, value)| value.as_str()).collect()
    }

    #[test]
    fn a_process_has_a_name_a_version_and_an_instance_of_its_own() {
        let (one, other) = (Resource::new("1.2.3", &[]), Resource::new("1.2.3", &[]));
        assert_eq!(value(&one, "service.name"), ["rollcall"]);
        assert_eq!(value(&one, "service.version"), ["1.2.3"]);
        let id = value(&one, "service.instance.id")[0];
        assert_eq!((id.len(), &id[14..15]), (36, "4"), "{id}");
        assert!("89ab".contains(&id[19..20]), "{id}");
        assert_ne!(value(&one, "service.instance.id"), value(&other, "service.instance.id"));
    }

    #[test]
    fn what_the_environment_says_goes_first_and_nothing_is_there_twice() {
        let named = [("service.name", "mine"), ("deployment.environment.name", "test")];
        let named = named.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let resource = Resource::new("1", &named);
        assert_eq!(value(&resource, "service.name"), ["mine"]);
        assert_eq!(value(&resource, "deployment.environment.name"), ["test"]);
        assert_eq!(resource.proto().attributes.len(), 4);
    }
}

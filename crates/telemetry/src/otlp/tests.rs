//! Goal: the environment is read as the specification says, and a mistake in it is told with its variable and its mend.
//! Method: cases of variables, read without an environment.

use std::collections::BTreeMap;

use super::*;

fn read(variables: &[(&str, &str)]) -> Result<Option<Otlp>, OtlpError> {
    let variables: BTreeMap<_, _> = variables.iter().copied().collect();
    Otlp::read(&|name| variables.get(name).map(|value| (*value).to_owned()))
}

fn with(variables: &[(&str, &str)]) -> Otlp {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/");
    read(&[&[endpoint][..], variables].concat()).unwrap().unwrap()
}

#[test]
fn the_endpoint_is_a_base_address_and_every_signal_has_its_path() {
    let otlp = with(&[]);
    let (metrics, every) = otlp.metrics.unwrap();
    let ((traces, spans, sampler), (logs, records)) = (otlp.traces.unwrap(), otlp.logs.unwrap());
    assert_eq!((metrics.url.as_str(), every), ("http://127.0.0.1:4318/v1/metrics", Duration::from_secs(60)));
    assert_eq!((traces.url.as_str(), sampler), ("http://127.0.0.1:4318/v1/traces", Sampler::Always));
    assert_eq!(logs.url, "http://127.0.0.1:4318/v1/logs");
    assert_eq!((spans.queue_max, spans.batch_max, spans.delay), (2_048, 512, Duration::from_secs(5)));
    assert_eq!((records.delay, traces.patience), (Duration::from_secs(1), Duration::from_secs(10)));
}

#[test]
fn without_an_endpoint_or_with_everything_switched_off_nothing_is_exported_and_nothing_else_is_read() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c");
    for variables in [
        &[][..],
        &[("OTEL_TRACES_SAMPLER", "nonsense")],
        &[endpoint, ("OTEL_SDK_DISABLED", "True")],
        &[
            endpoint,
            ("OTEL_TRACES_EXPORTER", "none"),
            ("OTEL_METRICS_EXPORTER", "none"),
            ("OTEL_LOGS_EXPORTER", "none"),
        ],
    ] {
        assert_eq!(read(variables), Ok(None), "{variables:?}");
    }
}

#[test]
fn a_signals_own_variable_goes_before_the_general_one() {
    let otlp = with(&[
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:1/in"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "250"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=a%2Cb, authorization=secret"),
        ("OTEL_METRICS_EXPORTER", "none"),
    ]);
    assert_eq!(otlp.metrics, None);
    let traces = otlp.traces.unwrap().0;
    assert_eq!((traces.url.as_str(), traces.patience), ("http://traces:1/in", Duration::from_millis(250)));
    let headers = [("x-tenant", "a,b"), ("authorization", "secret")];
    assert_eq!(traces.headers, headers.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let only = read(&[("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://logs")]).unwrap().unwrap();
    assert!(only.metrics.is_none() && only.traces.is_none() && only.logs.is_some());
}

#[test]
fn the_sampler_follows_the_specification() {
    let sampler = |name, argument| with(&[("OTEL_TRACES_SAMPLER", name), argument]).traces.unwrap().2;
    let quarter = ("OTEL_TRACES_SAMPLER_ARG", "0.25");
    assert_eq!(sampler("always_off", quarter), Sampler::Never);
    assert_eq!(sampler("parentbased_always_on", quarter), Sampler::Always);
    for name in ["traceidratio", "parentbased_traceidratio"] {
        assert_eq!(sampler(name, quarter), Sampler::ratio(0.25).unwrap());
        assert_eq!(sampler(name, ("OTHER", "")), Sampler::ratio(1.0).unwrap());
    }
}

#[test]
fn the_service_has_the_name_of_its_own_variable() {
    let named = with(&[
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,service.instance.id=one,host.name=a%20b,"),
        ("OTEL_SERVICE_NAME", "mine"),
    ]);
    let expected = [("service.instance.id", "one"), ("host.name", "a b"), ("service.name", "mine")];
    assert_eq!(named.named, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
}

#[test]
fn a_mistake_is_told_with_its_variable_and_its_mend() {
    for (variable, value, mend) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector:4318", "http://127.0.0.1:4318"),
        ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "collector", "http://127.0.0.1:4318"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://", "http://127.0.0.1:4318"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://host:port", "http://127.0.0.1:4318"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:secret@host:4318", "http://127.0.0.1:4318"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "0", "leave it out for 60000"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1.5", "leave it out for 60000"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "many", "leave it out for 2048"),
        ("OTEL_BLRP_SCHEDULE_DELAY", "-1", "leave it out for 1000"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon", "leave it out for 10000"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "use http/protobuf"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", "use none"),
        ("OTEL_TRACES_EXPORTER", "zipkin", "use otlp or none"),
        ("OTEL_TRACES_SAMPLER", "sometimes", "use always_on"),
        ("OTEL_SDK_DISABLED", "yes", "use true or false"),
        ("OTEL_RESOURCE_ATTRIBUTES", "a=b,c", "entry 2 is not `name=value`"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "secret", "entry 1 is not `name=value`"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a key=secret", "entry 1 is not `name=value`"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=b,key=secret%0A", "entry 2 is not `name=value`"),
    ] {
        let error = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"), (variable, value)]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{variable}: ")) && error.contains(mend), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
    let ratio = [("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "25%")];
    let error = read(&[&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c")][..], &ratio].concat()).unwrap_err();
    assert!(error.to_string().starts_with("OTEL_TRACES_SAMPLER_ARG: `25%`"), "{error}");
}

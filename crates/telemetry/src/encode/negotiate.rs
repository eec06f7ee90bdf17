//! Which format a scraper gets, from its `Accept` header.
//!
//! OpenMetrics goes to those who ask for it by name and do not prefer text; everyone else, also one who asks for
//! something that is not offered, gets the text format: an unreadable page helps a scraper more than none.

use super::Format;

/// Chooses a format.
pub(crate) fn negotiate(accept: Option<&str>) -> Format {
    let (mut open_metrics, mut text) = (None, Preference::default());
    for range in accept.unwrap_or_default().split(',').map(Range::parse) {
        match range.media.as_str() {
            "application/openmetrics-text" if range.version_is("1.0.0") => open_metrics = better(open_metrics, range.q),
            "text/plain" if range.version_is("0.0.4") => text.exact = better(text.exact, range.q),
            "text/*" => text.family = better(text.family, range.q),
            "*/*" => text.any = better(text.any, range.q),
            _ => {}
        }
    }
    match open_metrics {
        Some(q) if q > 0.0 && q >= text.q() => Format::OpenMetrics,
        _ => Format::Text,
    }
}

/// How much text is wanted: the most specific range that names it counts.
#[derive(Default)]
struct Preference {
    exact: Option<f32>,
    family: Option<f32>,
    any: Option<f32>,
}

impl Preference {
    fn q(&self) -> f32 {
        self.exact.or(self.family).or(self.any).unwrap_or(0.0)
    }
}

fn better(a: Option<f32>, b: f32) -> Option<f32> {
    Some(a.map_or(b, |a| a.max(b)))
}

/// One entry of the header.
struct Range<'a> {
    media: String,
    version: Option<&'a str>,
    q: f32,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let mut range = Self { media: parts.next().unwrap_or_default().to_ascii_lowercase(), version: None, q: 1.0 };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim().to_ascii_lowercase().as_str() {
                "version" => range.version = Some(value.trim().trim_matches('"')),
                // A quality that is no number is read as "not wanted": it must not win over a well-formed one.
                "q" => range.q = value.trim().parse().ok().filter(|q| (0.0..=1.0).contains(q)).unwrap_or(0.0),
                _ => {}
            }
        }
        range
    }

    fn version_is(&self, version: &str) -> bool {
        self.version.is_none_or(|asked| asked == version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(accept: &str, format: Format) {
        assert_eq!(negotiate(Some(accept)), format, "for Accept: {accept}");
    }

    #[test]
    fn text_is_the_default() {
        assert_eq!(negotiate(None), Format::Text);
        for accept in ["", "*/*", "text/plain", "text/html", "application/*", "application/json", ";;,,=", "q=1"] {
            check(accept, Format::Text);
        }
    }

    #[test]
    fn open_metrics_goes_to_those_who_ask_for_it_by_name() {
        check("application/openmetrics-text", Format::OpenMetrics);
        check("Application/OpenMetrics-Text; Version=1.0.0; charset=utf-8", Format::OpenMetrics);
        check("application/openmetrics-text; version=\"1.0.0\", text/plain", Format::OpenMetrics);
    }

    #[test]
    fn scrapers_as_they_are_get_open_metrics() {
        check(
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
             text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            Format::OpenMetrics,
        );
        check(
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
             application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
             text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            Format::OpenMetrics,
        );
    }

    #[test]
    fn a_quality_decides_and_the_most_specific_range_speaks_for_text() {
        check("application/openmetrics-text;q=0.4, text/plain;q=0.5", Format::Text);
        check("application/openmetrics-text;q=0.5, text/plain;q=0.4, */*", Format::OpenMetrics);
        check("application/openmetrics-text;q=0.5, text/*;q=0.6", Format::Text);
        check("application/openmetrics-text;q=0.5, */*", Format::Text);
        check("application/openmetrics-text;q=0", Format::Text);
        check("application/openmetrics-text;q=much", Format::Text);
        check("application/openmetrics-text;q=7, text/plain;q=0.1", Format::Text);
    }

    #[test]
    fn a_version_that_is_not_offered_is_not_chosen() {
        check("application/openmetrics-text;version=0.0.1", Format::Text);
        check("application/openmetrics-text;version=2.0.0, text/plain;q=0.1", Format::Text);
    }
}

//! The console at `/`: one page that shows conversations as they are named, corrects voices and enrols people.
//!
//! Here are only its files, as they lie in `console/`, and what is sent along with them. They are part of the binary, need
//! no build step and ask nothing of anybody but this server; whatever the page shows comes from the same interface that
//! everybody has ([`crate::http`]).

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, EntityTag, Header as _, IfNoneMatch, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use actix_web::{HttpRequest, HttpResponse, web};
use sha2::{Digest as _, Sha256};

use crate::http::{read, resource};

/// Nothing is loaded but from here, nothing is inline, and no other page may frame this one. `data:` is for the icon,
/// `blob:` for listening to a recording before it is sent.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The microphone is for enrolment; nothing else of the device is asked for.
const PERMISSIONS: &str = "microphone=(self), camera=(), geolocation=(), display-capture=()";

/// One file of the page.
#[derive(Debug, Clone, Copy)]
struct File {
    path: &'static str,
    kind: &'static str,
    text: &'static str,
}

macro_rules! files {
    ($($name:literal $kind:ident),* $(,)?) => {
        [$(File { path: concat!("/console/", $name), kind: $kind, text: include_str!(concat!("console/", $name)) }),*]
    };
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

const PAGE: File = File { path: "/", kind: HTML, text: include_str!("console/index.html") };

const FILES: [File; 27] = files![
    "base.css" CSS,
    "layout.css" CSS,
    "voices.css" CSS,
    "dialogs.css" CSS,
    "main.js" SCRIPT,
    "announce.js" SCRIPT,
    "api.js" SCRIPT,
    "budget.js" SCRIPT,
    "capture.js" SCRIPT,
    "conversation.js" SCRIPT,
    "conversations.js" SCRIPT,
    "correct.js" SCRIPT,
    "dialog.js" SCRIPT,
    "dom.js" SCRIPT,
    "enrol.js" SCRIPT,
    "explain.js" SCRIPT,
    "feed.js" SCRIPT,
    "lane.js" SCRIPT,
    "people.js" SCRIPT,
    "queue.js" SCRIPT,
    "recorder.js" SCRIPT,
    "rulings.js" SCRIPT,
    "scale.js" SCRIPT,
    "streams.js" SCRIPT,
    "timeline.js" SCRIPT,
    "voice.js" SCRIPT,
    "words.js" SCRIPT,
];

/// Mounts the page and its files.
pub(crate) fn mount(config: &mut web::ServiceConfig) {
    for file in FILES.into_iter().chain([PAGE]) {
        let tag = file.tag();
        let answer = move |request: HttpRequest| {
            let tag = tag.clone();
            async move { file.answer(&request, tag) }
        };
        config.service(resource(file.path, "GET, HEAD").route(read().to(answer)));
    }
}

impl File {
    /// Changes when the file does. A browser asks at each load whether what it has is the newest, file by file: a page that
    /// is opened in the very moment of an update can have files of both versions, until it is loaded again.
    fn tag(self) -> EntityTag {
        let digest = Sha256::digest(self.text.as_bytes());
        EntityTag::new_strong(digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect())
    }

    fn answer(self, request: &HttpRequest, tag: EntityTag) -> HttpResponse {
        let is_there = has(request, &tag);
        let mut answer = if is_there { HttpResponse::NotModified() } else { HttpResponse::Ok() };
        answer
            .content_type(self.kind)
            .insert_header((ETAG, tag.to_string()))
            .insert_header((CACHE_CONTROL, "no-cache"))
            .insert_header((CONTENT_SECURITY_POLICY, POLICY))
            .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
            .insert_header((REFERRER_POLICY, "no-referrer"))
            .insert_header(("Permissions-Policy", PERMISSIONS));
        if is_there { answer.finish() } else { answer.body(self.text) }
    }
}

/// Whether the browser says that it has this version.
fn has(request: &HttpRequest, tag: &EntityTag) -> bool {
    match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Items(items)) => items.iter().any(|item| item.weak_eq(tag)),
        Ok(IfNoneMatch::Any) | Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the page asks nothing of anybody else, has nothing that its own policy would forbid, and no file is missing.
    //! Method: the files as they are embedded, and the real routes.

    use std::collections::BTreeSet;

    use actix_web::http::StatusCode;
    use actix_web::http::header::IF_NONE_MATCH;
    use actix_web::test::{TestRequest, call_service, init_service};
    use actix_web::{App, http::header::HeaderMap};

    use super::*;

    async fn ask(path: &str, tag: Option<&str>) -> (StatusCode, HeaderMap) {
        let app = init_service(App::new().configure(mount)).await;
        let request = tag
            .into_iter()
            .fold(TestRequest::with_uri(path), |request, tag| request.insert_header((IF_NONE_MATCH, tag)));
        let answer = call_service(&app, request.to_request()).await;
        (answer.status(), answer.headers().clone())
    }

    #[actix_web::test]
    async fn every_file_has_the_policy_and_a_tag_that_saves_sending_it_again() {
        for file in FILES.into_iter().chain([PAGE]) {
            let (status, headers) = ask(file.path, None).await;
            assert_eq!(status, StatusCode::OK, "{}", file.path);
            assert_eq!(headers.get(CONTENT_SECURITY_POLICY).unwrap(), POLICY, "{}", file.path);
            let tag = headers.get(ETAG).unwrap().to_str().unwrap();
            assert_eq!(ask(file.path, Some(tag)).await.0, StatusCode::NOT_MODIFIED, "{}", file.path);
            assert_eq!(ask(file.path, Some("\"another\"")).await.0, StatusCode::OK, "{}", file.path);
        }
    }

    #[test]
    fn the_policy_allows_nothing_inline_and_no_other_host() {
        assert!(POLICY.starts_with("default-src 'none'"));
        for loophole in ["unsafe", "*", "http", "ws:"] {
            assert!(!POLICY.contains(loophole), "{loophole}");
        }
    }

    #[test]
    fn no_file_names_another_host_or_holds_style_or_script_in_its_markup() {
        for file in FILES.into_iter().chain([PAGE]) {
            let foreign = file.text.replace("http://www.w3.org/2000/svg", "");
            assert!(!foreign.contains("http://") && !foreign.contains("https://"), "{}", file.path);
        }
        for inline in [" style=", "<style", " onclick=", "<script>", "javascript:"] {
            assert!(!PAGE.text.contains(inline), "{inline}");
        }
    }

    #[test]
    fn whatever_a_file_loads_is_there() {
        let there: BTreeSet<&str> = FILES.iter().map(|file| file.path).collect();
        for file in FILES.into_iter().chain([PAGE]) {
            let loaded = file.text.split('"').filter(|text| text.starts_with("./") || text.starts_with("/console/"));
            for path in loaded.map(|path| path.replacen("./", "/console/", 1)) {
                assert!(there.contains(path.as_str()), "{} loads {path}", file.path);
            }
        }
    }
}

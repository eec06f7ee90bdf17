//! `/docs`: the interface for people, made from the same document that programs read.
//!
//! Plain HTML without script or style, so that the strictest content-security policy holds.

use std::fmt::Write as _;

use actix_web::HttpResponse;
use actix_web::http::header::CONTENT_SECURITY_POLICY;
use serde_json::Value;

use super::openapi::DOCUMENT;

pub(super) async fn page() -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"))
        .body(html())
}

fn html() -> String {
    let document: Value = serde_json::from_str(DOCUMENT).expect("a test reads the same document");
    let mut rows = String::new();
    for (path, item) in document.get("paths").and_then(Value::as_object).into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            let Some(summary) = operation.get("summary").and_then(Value::as_str) else { continue };
            let method = method.to_ascii_uppercase();
            writeln!(rows, "<tr><td><code>{method}</code></td><td><code>{path}</code></td><td>{summary}</td></tr>")
                .expect("writing into a String cannot fail");
        }
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>Rollcall: the interface</title></head>\n\
         <body>\n<h1>Rollcall</h1>\n<p>Who is speaker 3? The interface of this server; for programs it is \
         <a href=\"/openapi.json\">/openapi.json</a>.</p>\n\
         <table>\n<tr><th>Method</th><th>Path</th><th>What it does</th></tr>\n{rows}</table>\n</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_every_endpoint_of_the_document() {
        let (document, page): (Value, _) = (serde_json::from_str(DOCUMENT).unwrap(), html());
        for path in document["paths"].as_object().unwrap().keys() {
            assert!(page.contains(&format!("<code>{path}</code>")), "{path}");
        }
    }
}

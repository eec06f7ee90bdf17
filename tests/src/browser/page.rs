//! What a person does with a page: look for something, click it, type, and wait until it says something.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Browser;
use crate::server::PATIENCE;

/// The protocol's name for an element's reference.
const REFERENCE: &str = "element-6066-11e4-a52e-4f735466cecf";

/// How often a page is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What is there for screen readers alone is cut to one pixel, which the browser's own check takes for visible.
const VISIBLE: &str = "const {width, height} = arguments[0].getBoundingClientRect(); return width > 1 && height > 1 && \
                       arguments[0].checkVisibility({opacityProperty: true, visibilityProperty: true})";

/// Keys without a letter, as the protocol names them.
pub mod key {
    /// Moves the focus on.
    pub const TAB: &str = "\u{E004}";
    /// Presses a button, follows a link.
    pub const ENTER: &str = "\u{E007}";
    /// Closes a dialog.
    pub const ESCAPE: &str = "\u{E00C}";
}

/// Something on the page.
#[derive(Debug, Clone, PartialEq)]
pub struct Element(String);

impl Browser {
    /// Everything that a CSS selector finds.
    #[must_use]
    pub fn all(&self, css: &str) -> Vec<Element> {
        let found = self.driver.post("elements", &json!({"using": "css selector", "value": css}));
        let references = found.as_array().into_iter().flatten();
        references.filter_map(|found| found[REFERENCE].as_str().map(|id| Element(id.to_owned()))).collect()
    }

    /// The first visible thing that a selector finds, as soon as it is there.
    pub fn find(&self, css: &str) -> Element {
        self.until(css, || self.all(css).into_iter().find(|element| self.is_shown(element)))
    }

    /// The first visible thing of a selector whose text holds something, as soon as it is there.
    pub fn find_saying(&self, css: &str, part: &str) -> Element {
        let says = |element: &Element| self.is_shown(element) && self.text(element).contains(part);
        self.until(&format!("{css} that says {part:?}"), || self.all(css).into_iter().find(says))
    }

    /// Whether a person would see it.
    #[must_use]
    pub fn is_shown(&self, element: &Element) -> bool {
        self.driver.try_post("execute/sync", &visible(element)).is_ok_and(|shown| shown == true)
    }

    /// Its text as it is shown; empty when it has just gone.
    #[must_use]
    pub fn text(&self, element: &Element) -> String {
        let script = json!({"script": "return arguments[0].innerText", "args": [{REFERENCE: element.0}]});
        let text = self.driver.try_post("execute/sync", &script).unwrap_or_default();
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Clicks, as a mouse does.
    pub fn click(&self, element: &Element) {
        self.driver.post(&format!("element/{}/click", element.0), &json!({}));
    }

    /// Types into a field; a path, where it is a field for files.
    pub fn write(&self, element: &Element, text: &str) {
        self.driver.post(&format!("element/{}/value", element.0), &json!({"text": text}));
    }

    /// Presses and releases one key, wherever the focus is.
    pub fn press(&self, key: &str) {
        let strokes = json!([{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]);
        self.driver.post("actions", &json!({"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]}));
    }

    /// What has the focus, in words: its label for screen readers, or its text.
    #[must_use]
    pub fn focused(&self) -> String {
        let script = "const a = document.activeElement; return a.getAttribute('aria-label') ?? a.textContent.trim()";
        self.script(script, &[]).as_str().unwrap_or_default().to_owned()
    }

    /// Presses Tab until something with these words has the focus.
    ///
    /// # Panics
    /// When it does not come within a hundred presses.
    pub fn tab_to(&self, words: &str) {
        for _ in 0..100 {
            if self.focused().contains(words) {
                return;
            }
            self.press(key::TAB);
        }
        panic!("{words:?} cannot be reached by Tab; the focus is on {:?}", self.focused());
    }

    /// The title of the page.
    #[must_use]
    pub fn title(&self) -> String {
        self.driver.get("title").as_str().unwrap_or_default().to_owned()
    }

    /// Looks until there is something.
    ///
    /// # Panics
    /// When that takes longer than anything here should; the page's own text is in the message.
    pub fn until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let since = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            if since.elapsed() > PATIENCE {
                let page = self.script("return document.body.innerText", &[]);
                panic!("{what}: did not come. The page says: {page} Its console: {:?}", self.console());
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

fn visible(element: &Element) -> Value {
    json!({"script": VISIBLE, "args": [{REFERENCE: element.0}]})
}

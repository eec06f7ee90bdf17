//! What must hold of any page of ours, whatever it shows.

use super::Browser;

impl Browser {
    /// Neither a broken rule of the policy nor an error in the console, and no request to anybody but `own`.
    ///
    /// # Panics
    /// When there is one; but a refusal of the server, which the browser itself notes, the page tells in words.
    pub fn assert_clean(&self, own: &str) {
        let said: Vec<String> = self.console().into_iter().filter(|line| !is_refusal(line)).collect();
        assert!(said.is_empty(), "{said:#?}");
        let is_own = |address: &str| {
            let rest = address.strip_prefix(own);
            rest.is_some_and(|rest| rest.starts_with('/'))
                || address.starts_with("data:")
                || address.starts_with("blob:")
        };
        let foreign: Vec<String> = self.requests().into_iter().filter(|address| !is_own(address)).collect();
        assert!(foreign.is_empty(), "{foreign:#?}");
    }

    /// Nothing is wider than the screen.
    ///
    /// # Panics
    /// When something is.
    pub fn assert_fits(&self, view: &str) {
        let widths = self.script("return [document.documentElement.scrollWidth, innerWidth]", &[]);
        let width = |place: usize| widths[place].as_u64().expect("a width");
        assert!(width(0) <= width(1), "{view} is {} wide on {}", width(0), width(1));
    }
}

fn is_refusal(line: &str) -> bool {
    line.contains("Failed to load resource") && line.contains("422")
}

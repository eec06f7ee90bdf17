//! How much memory and how many files this process may have: its control group's limit, the machine's memory, its own.
//!
//! Reads what Linux tells under a root folder, which tests replace. Does not own what the process uses (see `process`).

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of memory that the process may use: the least of the machine's and its control groups'. `None` where nothing says.
pub(super) fn memory_max(root: &Path) -> Option<u64> {
    let machine = read(root, "proc/meminfo")
        .and_then(|text| number_after(&text, "MemTotal:"))
        .map(|kib| kib.saturating_mul(1024));
    let groups = read(root, "proc/self/cgroup").unwrap_or_default();
    let group_limits = groups.lines().flat_map(|line| limits_of(root, line));
    group_limits.chain(machine).min()
}

/// Descriptors that the process may have open. `None` when there is no limit, or nothing says.
pub(super) fn files_max(root: &Path) -> Option<u64> {
    let limits = read(root, "proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The number after `key` in a file of such lines.
pub(super) fn number_after(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The limits of a line of `/proc/self/cgroup`, of its group and of every group above it. Version 2 has an empty list of
/// controllers; version 1 keeps memory in a tree of its own, and says "no limit" by a number near 2⁶³.
fn limits_of(root: &Path, line: &str) -> Vec<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { return Vec::new() };
    let (tree, file) = if controllers.is_empty() {
        ("sys/fs/cgroup", "memory.max")
    } else if controllers.split(',').any(|controller| controller == "memory") {
        ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
    } else {
        return Vec::new();
    };
    let group = PathBuf::from(group.trim_start_matches('/'));
    let groups = group.ancestors().map(|group| root.join(tree).join(group).join(file));
    groups.filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok()).collect()
}

fn read(root: &Path, file: &str) -> Option<String> {
    fs::read_to_string(root.join(file)).ok()
}

#[cfg(test)]
mod tests {
    //! Goal: the least limit counts, wherever it stands, and a file that is missing is no limit.
    //! Method: folders that look like a machine's.

    use super::*;

    struct Machine(PathBuf);

    impl Machine {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(format!("rollcall-room-{name}-{}", std::process::id()));
            for (file, text) in files {
                let file = root.join(file);
                fs::create_dir_all(file.parent().expect("it lies in a folder")).expect("a folder can be made");
                fs::write(file, text).expect("a file can be written");
            }
            Self(root)
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            // What is left in the temporary folder does no harm.
            fs::remove_dir_all(&self.0).ok();
        }
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:       4096 kB\nMemFree: 1 kB\n");

    #[test]
    fn the_least_limit_of_the_groups_above_counts() {
        let groups = [
            MEMINFO,
            ("proc/self/cgroup", "0::/pods/one\n"),
            ("sys/fs/cgroup/pods/one/memory.max", "max\n"),
            ("sys/fs/cgroup/pods/memory.max", "1048576\n"),
        ];
        assert_eq!(memory_max(&Machine::new("second", &groups).0), Some(1_048_576));
    }

    #[test]
    fn the_first_version_keeps_memory_in_a_tree_of_its_own() {
        let groups = [
            MEMINFO,
            ("proc/self/cgroup", "5:cpu,cpuacct:/one\n4:memory:/one\n"),
            ("sys/fs/cgroup/memory/one/memory.limit_in_bytes", "2097152\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        assert_eq!(memory_max(&Machine::new("first", &groups).0), Some(2_097_152));
    }

    #[test]
    fn without_a_group_the_machine_is_the_limit_and_without_anything_there_is_none() {
        assert_eq!(memory_max(&Machine::new("none", &[MEMINFO]).0), Some(4096 * 1024));
        assert_eq!(memory_max(Path::new("/nonexistent")), None);
    }

    #[test]
    fn the_soft_limit_of_open_files_is_read_and_unlimited_is_none() {
        let line = |soft| format!("Limit Soft Hard Units\nMax open files            {soft}    1048576    files\n");
        let machine = |name, soft| Machine::new(name, &[("proc/self/limits", &line(soft))]);
        assert_eq!(files_max(&machine("soft", "1024").0), Some(1024));
        assert_eq!(files_max(&machine("unlimited", "unlimited").0), None);
    }

    #[test]
    fn this_process_may_have_files_and_memory() {
        assert!(files_max(Path::new("/")).is_some_and(|files| files > 3));
        assert!(memory_max(Path::new("/")).is_some_and(|bytes| bytes > 1 << 20));
    }
}

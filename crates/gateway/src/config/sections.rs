//! Every field of the configuration: its unit, its range, its default and the reason for it.
//!
//! A field's documentation is also its comment in the example file, so it is written for the person who sets it.

use std::num::NonZeroUsize;

use gpu_worker::Manifest;

use super::section::section;
use super::switch::Switch;

section! {
    /// Where the service listens and keeps its data.
    Server {
        /// Address and port. Loopback only, as long as there are no keys; port 0 picks a free one.
        listen: String = "127.0.0.1:8700".to_owned();
        /// Directory of the store. Left out, it is `data` in the home directory, beside the models.
        data: Option<String> = None, example "\"/var/lib/rollcall\"";
        /// Names, parted by commas, by which a proxy in front calls this server. Others than this machine's own are refused,
        /// so that no page can reach it under a name of its own.
        hosts: Option<String> = None, example "\"rollcall.example\"";
        /// How log records are written on standard error: "text" for people, "json" for machines, one object a line.
        log: String = "text".to_owned();
        /// A file into which what the schedulers do is recorded, for `rollcall simulate --trace`: when which of the numbered voices
        /// spoke and for how long, what was asked of the model, how long it took, what came out. No id, name, word, audio or
        /// voiceprint. One that is there is never overwritten: a number is put behind its name, up to ten files; a server that
        /// finds ten runs without. Left out, nothing is recorded.
        record: Option<String> = None, example "\"/var/lib/rollcall/trace.jsonl\"";
        /// Mebibytes after which the recording ends; ten recordings take ten times as much. An hour of a lively conversation
        /// takes about one.
        record_mebibytes: u32 = 64, 1 to 65536;
    }
}

section! {
    /// What a voice and a socket may ask of the model. A query spends one attempt and one token; nothing is refunded.
    Budget {
        /// Queries for one voice of one conversation. Twelve clips of 2 to 10 s decide a voice or show that it is nobody.
        voice_attempts: u32 = 12, 1 to 1000;
        /// Queries a socket may make at once, before the refill counts: a meeting's voices all at its start.
        socket_burst: u32 = 16, 1 to 10000;
        /// Queries an hour that come back to a socket, one at a time and evenly: 240 is one every 15 s.
        refill_per_hour: u32 = 240, 1 to 100000;
        /// Queries that a socket may make beyond those for voices with new speech; the refill pays them back before anybody
        /// gets another. 0: none, because an insistent stranger always has new speech (docs/decisions/0015).
        relaxed_tokens: u32 = 0, 0 to 10000;
        /// Seconds of speech that no query has used from which on a voice has new speech in this sense: one full query of it.
        relaxed_speech_seconds: f64 = 10.0, 0.5 to 600;
        /// Seconds of speech that no query has used after which a voice that has spent its queries has all of them again, and at
        /// least as much time after it had them last. 0: never in one conversation (docs/decisions/0015).
        renewal_speech_seconds: f64 = 0.0, 0 to 600;
    }
}

section! {
    /// How queued voices are held and ordered, for one recording's audio.
    Queue {
        /// Voices that wait at once. Choosing scans them all, so this bounds the scan; beyond it the speech stays with
        /// its voice until the next update.
        slots: u32 = 100, 1 to 1000;
        /// Stretches of speech kept a voice. The oldest go first, and their seconds are counted.
        ranges: u32 = 128, 1 to 4096;
        /// Waiting slots of one speaker number, over all its scopes, so that a provider that restarts often cannot fill
        /// the queue.
        slots_per_number: u32 = 8, 1 to 1000;
        /// Seconds after which the oldest ready voice goes first, whatever else is preferred.
        age_override_seconds: f64 = 5.0, 0.1 to 3600;
        /// Of so many selections in a row at most one goes by age alone. 1: each may. With 2 first examinations stay quick under
        /// overload, and the oldest voice waits up to twice as long (docs/decisions/0015).
        override_every: u32 = 1, 1 to 100;
    }
}

section! {
    /// When a voice is examined, and what counts as a person.
    Matching {
        /// Seconds of new speech before a voice is first examined: shorter clips spread the distances too far.
        clip_minimum_seconds: f64 = 2.0, 0.5 to 10;
        /// Seconds below which no clip is ever sent to the model, which gives noise for less.
        clip_hard_minimum_seconds: f64 = 0.5, 0.1 to 10;
        /// Seconds of speech a verdict needs.
        evidence_seconds: f64 = 5.0, 0.5 to 60;
        /// Clips of a voice that make up its evidence, the newest ones.
        clips_kept: u32 = 3, 1 to 16;
        /// Seconds of audio in one query. The model gains little beyond, and its cost grows with the length.
        query_seconds_max: f64 = 10.0, 1 to 30;
        /// Voices of one recording. A provider that invents speakers without end is stopped here.
        voices: u32 = 128, 1 to 4096;
        /// Whether pinned people are suggested where a voice comes close to them and does not suffice for a name: true or false.
        /// Off, because a suggestion shows a name that the evidence does not carry.
        suggestions: Switch = Switch::Off;
        /// Seconds of new speech after which an owner who reconnected may be recognised, if all else agrees. One clip: less
        /// speech spreads the distances too far, and the full evidence follows anyway.
        reconnect_evidence_seconds: f64 = 2.0, 0.5 to 10;
        /// Seconds for which what a socket left behind serves the next one of its device. Long enough to walk out of a dead
        /// spot, short enough that the same person still holds the device.
        reconnect_within_seconds: u32 = 120, 1 to 120;
        /// Seconds between two writes of what a reconnect needs, while the owner speaks. A quarter of the time it serves, so
        /// that it is fresh when the socket drops, and one write in many clips.
        continuity_every_seconds: u32 = 30, 1 to 3600;
        /// Whether speech that is mostly silence or clipped is left out of a query before a token is spent: true or false. Off,
        /// because on real conversations it saved less than one query in a hundred.
        clip_gate: Switch = Switch::Off;
        /// Cosine distance below which a voice is a person. Left out, the model's manifest says it.
        threshold: Option<f64> = None, 0.0 to 2.0, example "0.55";
        /// How much farther the next person must be. Left out, the model's manifest says it.
        margin: Option<f64> = None, 0.0 to 2.0, example "0.10";
        /// Distance up to which the owner is a near miss. Left out, the model's manifest says it.
        near_miss_bound: Option<f64> = None, 0.0 to 2.0, example "0.65";
        /// Distance up to which a pinned person is suggested. Left out, the model's manifest says it.
        suggestion_bound: Option<f64> = None, 0.0 to 2.0, example "0.60";
        /// How much farther the next person must be for a suggestion below the threshold. Left out, from the manifest.
        suggestion_margin: Option<f64> = None, 0.0 to 2.0, example "0.06";
        /// Distance up to which a rejected voice may yet be the owner, and is examined earlier. Left out, from the manifest.
        near_owner_bound: Option<f64> = None, 0.0 to 2.0, example "0.65";
        /// Distance below which two voices of different provider streams are one. Left out, from the manifest.
        grouping: Option<f64> = None, 0.0 to 2.0, example "0.50";
        /// Distance below which a reconnecting owner is recognised after two seconds. Left out, from the manifest.
        reconnect: Option<f64> = None, 0.0 to 2.0, example "0.45";
    }
}

section! {
    /// What is kept of conversations that are over: who spoke when, and what people decided. Never audio or what was said.
    History {
        /// Days without news after which a conversation and its corrections are removed; 0 keeps them for ever. A quarter of
        /// a year covers going back to a meeting, and no more of who met whom than that.
        keep_days: u32 = 90, 0 to 3650;
    }
}

section! {
    /// The model and the workers that run it.
    Extraction {
        /// Where voiceprints are computed: "local", in this process, or "remote", by the servers of the section remote.
        engine: String = "local".to_owned();
        /// Name of an installed model, a directory with a manifest, or "scripted" for a stand-in that needs no model.
        model: String = "campplus".to_owned();
        /// The ONNX Runtime library. Left out, the one in the home directory.
        runtime: Option<String> = None, example "\"/usr/lib/libonnxruntime.so\"";
        /// What the model runs on here: "cpu", "cuda" or "tensorrt", which must work or the service does not start; or "auto",
        /// CUDA where the runtime offers it and it works, and the processors otherwise.
        provider: String = "auto".to_owned();
        /// The graphics processors by their number, parted by commas, with one worker each. Left out, number 0.
        devices: Option<String> = None, example "\"0,1\"";
        /// Worker threads, one model session each. 0 takes one core less than there are, at least one. With remote servers it
        /// is the number of queries under way at once, and 0 takes two for each server: one that runs and one on its way.
        workers: u32 = 0, 0 to 256;
        /// Queries for each worker that may be started while it runs another. Each is one more run that a conversation waits
        /// for which comes new, and 0 costs a worker well under a millisecond between runs; 1 where runs are as short as
        /// that, as on a GPU.
        prefetch: u32 = 0, 0 to 8;
        /// Whether a conversation's share of the workers grows with its recordings: true or false. Off, because devices in one
        /// room hear the same voices, and whoever adds devices would take turns from everybody else.
        share_per_recording: Switch = Switch::Off;
        /// Seconds that one run may take: over ten times what the slowest clip needs, so that beyond it the session hangs.
        run_deadline_seconds: f64 = 3.0, 0.05 to 60;
        /// Seconds from the reservation to its settlement: one run to wait for, and one's own.
        reservation_deadline_seconds: f64 = 5.0, 0.05 to 120;
    }
}

section! {
    /// The servers that compute voiceprints, when extraction.engine is "remote". All of them run the model that
    /// extraction.model names, whose manifest must be here; the model itself and a runtime need not be.
    Remote {
        /// Addresses, parted by commas: one to sixteen, http://HOST[:PORT][/PATH]. There is no TLS, which is a tunnel's work.
        endpoints: Option<String> = None, example "\"http://10.0.0.7:8000,http://10.0.0.8:8000\"";
        /// "open_inference" (KServe v2, as Triton speaks it; an endpoint is a base address) or "embedding" (a WAV file as the
        /// multipart field `file`, answered with the vector in JSON; an endpoint is the whole address).
        protocol: String = "open_inference".to_owned();
        /// The model's name on the servers, for open_inference. Left out, extraction.model.
        model: Option<String> = None, example "\"speaker\"";
        /// The name of the model's input, for a server that tells of more than one.
        input: Option<String> = None, example "\"feats\"";
        /// The name of the model's output, for a server that tells of more than one.
        output: Option<String> = None, example "\"embs\"";
        /// Seconds that an answer may take: twenty times what ten seconds of audio take on one core, and within the run's own
        /// deadline.
        timeout_seconds: f64 = 2.0, 0.01 to 60;
        /// Seconds that connecting may take: in one data centre it takes milliseconds.
        connect_seconds: f64 = 0.5, 0.01 to 60;
        /// Seconds between two looks at a server that is in service: one that is about to stop says so before.
        check_seconds: f64 = 5.0, 0.01 to 3600;
        /// Failures in a row after which a server is given a rest: one is bad luck, and each further one costs a query.
        failures_max: u32 = 3, 1 to 100;
        /// Seconds of the longest rest; the first is 0.25, and each is twice the one before.
        pause_max_seconds: f64 = 10.0, 0.01 to 3600;
    }
}

section! {
    /// What one socket, and all of them, may hold.
    Sockets {
        /// Open sockets of this process. Each holds a ring of audio, so this bounds memory; the next one gets 503.
        sockets_max: u32 = 1000, 1 to 100000;
        /// Conversations of this process; the next one is refused with an error event.
        conversations_max: u32 = 1000, 1 to 100000;
        /// Sockets in one conversation, such as several devices in one room.
        lanes: u32 = 8, 1 to 64;
        /// Queries of one socket under way at once.
        queries_per_lane: u32 = 16, 1 to 256;
        /// Bytes of one binary frame. 1 MiB is over ten seconds of the fastest audio; a larger one closes the socket.
        frame_bytes: u32 = 1_048_576, 1024 to 16777216;
        /// Bytes of one text frame: 512 segments with text fit; a larger one closes the socket.
        text_bytes: u32 = 262_144, 1024 to 16777216;
        /// Segments in one message; a longer message is refused whole.
        segments_per_message: u32 = 512, 1 to 10000;
        /// Bytes of an id (recording, conversation, segment, label). Ids of every known client are shorter.
        id_bytes: u32 = 256, 16 to 1024;
        /// Events that wait for a slow client; beyond it the socket is closed, for the client no longer listens.
        outbound_events: u32 = 1024, 16 to 65536;
        /// Seconds of audio kept to examine. Transcription runs a few seconds behind, and rarely half a minute.
        ring_seconds: f64 = 60.0, 1 to 600;
        /// Seconds without a frame after which a socket is closed: its client is gone.
        idle_seconds: f64 = 300.0, 1 to 86400;
        /// Seconds that a stop may take: goodbyes, settlements and the last writes.
        drain_seconds: f64 = 10.0, 0.1 to 300;
    }
}

impl Matching {
    /// The model's manifest with the distances that are set here laid over it.
    #[must_use]
    pub fn over(&self, manifest: &Manifest) -> Manifest {
        let mut manifest = manifest.clone();
        let pairs = [
            (self.threshold, &mut manifest.threshold),
            (self.margin, &mut manifest.margin),
            (self.near_miss_bound, &mut manifest.near_miss_bound),
            (self.suggestion_bound, &mut manifest.suggestion_bound),
            (self.suggestion_margin, &mut manifest.suggestion_margin),
            (self.near_owner_bound, &mut manifest.near_owner_bound),
            (self.grouping, &mut manifest.grouping),
            (self.reconnect, &mut manifest.reconnect),
        ];
        for (set, field) in pairs {
            if let Some(distance) = set {
                *field = distance;
            }
        }
        manifest
    }
}

impl Extraction {
    /// The number of workers that was set; `None` leaves it to the pool, which knows the machine.
    #[must_use]
    pub fn workers_set(&self) -> Option<NonZeroUsize> {
        usize::try_from(self.workers).ok().and_then(NonZeroUsize::new)
    }
}

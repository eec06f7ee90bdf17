// A recording from the microphone, made into a WAV file in the page. Nothing leaves the page before it is sent.

/** The server takes 8 to 48 kHz; a browser that offers more is asked for this. */
const RATE_MAX = 48000;

export class Recorder {
  /** `heard(seconds, level)` is told while it runs; the level is 0 to 1, as loudness is perceived. */
  constructor(heard) {
    this.heard = heard;
    this.blocks = [];
    this.samples = 0;
  }

  async start() {
    if (!navigator.mediaDevices) {
      throw new Error(
        "this browser gives the microphone only to pages of this machine or over HTTPS; choose a file instead",
      );
    }
    // What the browser would do to please an ear, it would do to the voice.
    const audio = { channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: false };
    this.stream = await navigator.mediaDevices.getUserMedia({ audio }).catch((error) => {
      throw new Error(refusal(error));
    });
    this.context = new AudioContext();
    if (this.context.sampleRate > RATE_MAX) {
      await this.context.close();
      this.context = new AudioContext({ sampleRate: RATE_MAX });
    }
    await this.context.audioWorklet.addModule("/console/capture.js");
    const capture = new AudioWorkletNode(this.context, "capture", { numberOfOutputs: 0 });
    capture.port.onmessage = (event) => this.take(event.data);
    this.context.createMediaStreamSource(this.stream).connect(capture);
  }

  take(block) {
    this.blocks.push(block);
    this.samples += block.length;
    const power = block.reduce((sum, sample) => sum + sample * sample, 0) / block.length;
    const decibels = 10 * Math.log10(power + 1e-10);
    this.heard(this.samples / this.context.sampleRate, Math.min(Math.max((decibels + 60) / 60, 0), 1));
  }

  /** Lets go of the microphone and answers the WAV file. */
  async stop() {
    this.stream?.getTracks().forEach((track) => track.stop());
    const rate = this.context?.sampleRate ?? RATE_MAX;
    await this.context?.close().catch(() => {});
    return wav(this.blocks, this.samples, rate);
  }
}

function refusal(error) {
  if (error.name === "NotAllowedError")
    return "the browser was not allowed to use the microphone; allow it beside the address, or choose a file";
  if (error.name === "NotFoundError") return "there is no microphone; connect one, or choose a file";
  return `the microphone cannot be opened: ${error.message}`;
}

/** Sixteen bits a sample, one channel. */
function wav(blocks, samples, rate) {
  const view = new DataView(new ArrayBuffer(44 + 2 * samples));
  const tag = (at, name) => [...name].forEach((letter, index) => view.setUint8(at + index, letter.charCodeAt(0)));
  tag(0, "RIFF");
  view.setUint32(4, 36 + 2 * samples, true);
  tag(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, 2 * rate, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  tag(36, "data");
  view.setUint32(40, 2 * samples, true);
  let at = 44;
  for (const block of blocks) {
    for (const sample of block) {
      view.setInt16(at, Math.round(Math.min(Math.max(sample, -1), 1) * 32767), true);
      at += 2;
    }
  }
  return new Blob([view], { type: "audio/wav" });
}

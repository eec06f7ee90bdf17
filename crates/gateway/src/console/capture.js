// Runs on the audio thread: hands every block of the first channel to the page, unchanged.

class Capture extends AudioWorkletProcessor {
  process([input]) {
    const samples = input[0];
    if (samples) this.port.postMessage(samples.slice());
    return true;
  }
}

registerProcessor("capture", Capture);

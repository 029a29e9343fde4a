// Search where pages are opened as files: browsers start no worker for a file, and the theme then hides its box. This one
// runs the worker's script in a frame of the page; the theme begins only when somebody goes to the box.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      this.started = new Promise((resolve) => {
        const script = frame.contentDocument.createElement("script")
        script.onload = resolve
        script.src = url
        frame.contentDocument.body.append(script)
      })
    }

    postMessage(data) {
      this.started.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }

    terminate() {}
  }
}

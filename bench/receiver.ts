// Accepts requests on all loopback addresses and returns 200 immediately: bun receiver.ts. Prints its port. GET
// /arrivals returns and clears the received requests: [key, epoch milliseconds] in order. The key of a delivery is its
// X-Svc-Delivery-Id, that of any other request is its path.

let arrivals: (readonly [key: string, at: number])[] = [];

const server = Bun.serve({
  hostname: "0.0.0.0",
  port: 0,
  development: false,
  fetch(request) {
    const path = request.url.slice(request.url.indexOf("/", 8));
    if (path === "/arrivals") {
      const taken = arrivals;
      arrivals = [];
      return Response.json(taken);
    }
    arrivals.push([request.headers.get("x-svc-delivery-id") ?? path, Date.now()]);
    return new Response("ok");
  },
});
console.log(server.port);

export {};

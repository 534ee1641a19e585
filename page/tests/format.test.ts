import assert from "node:assert/strict";
import { test } from "node:test";
import {
  alike,
  bytes,
  bytesRange,
  int,
  parameters,
  percent,
  share,
  quantity,
  sentence,
  si,
  sig,
  signed,
  thin,
  tick,
  time,
  timeRange,
  unknown,
  usd,
  usdRange,
  useBinary,
} from "../src/text/format";

const plain = (text: string): string => text.replaceAll(thin, " ");

test("three figures, thousands by comma, a true minus sign", () => {
  assert.equal(sig(7.123), "7.12");
  assert.equal(sig(0.18), "0.180");
  assert.equal(sig(9.996), "10.0");
  assert.equal(sig(999.6), "1,000");
  assert.equal(sig(1234567), "1,230,000");
  assert.equal(sig(-0.0421), "−0.0421");
  assert.equal(sig(0), "0");
  assert.equal(sig(Number.NaN), unknown);
  assert.equal(sig(null), unknown);
  assert.equal(sig(6.563, 4), "6.563");
});

test("times take the unit that keeps them short", () => {
  assert.equal(plain(time(7.12)), "7.12 s");
  assert.equal(plain(time(0.0241)), "24.1 ms");
  assert.equal(plain(time(0.99996)), "1.00 s");
  assert.equal(plain(time(45.9e-6)), "45.9 µs");
  assert.equal(plain(time(12859239)), "149 days");
  assert.equal(plain(time(90)), "90.0 s");
  assert.equal(plain(time(10000)), "2.78 h");
  assert.equal(plain(timeRange(5.78, 8.77)), "5.78–8.77 s");
  assert.equal(time(0), "0");
  assert.equal(time(undefined), unknown);
});

test("bytes are decimal or binary for the whole page", () => {
  assert.equal(plain(bytes(164348010960)), "164 GB");
  assert.equal(plain(bytesRange(146e9, 184e9)), "146–184 GB");
  useBinary(true);
  assert.equal(plain(bytes(85899345920)), "80.0 GiB");
  assert.equal(plain(quantity(2 ** 20, "B")), "1.000 MiB");
  useBinary(false);
  assert.equal(bytes(0), "0");
});

test("prefixes, shares, counts and money", () => {
  assert.equal(plain(si(2278, "tokens/s")), "2.28 ktokens/s");
  assert.equal(plain(si(989.4e12, "FLOP/s")), "989 TFLOP/s");
  assert.equal(si(5), "5.00");
  assert.equal(plain(percent(0.4549)), "45.5 %");
  assert.equal(int(1788140), "1,788,140");
  assert.equal(plain(parameters(70553706496)), "70.6 B");
  assert.equal(plain(usd(12235137)), "$12.2 M");
  assert.equal(usd(5.9361), "$5.94");
  assert.equal(plain(usdRange(9.93e6, 15.1e6)), "$9.93–15.1 M");
  assert.equal(plain(quantity(11768775807176.69, "J", 3)), "3.27 GWh");
  assert.equal(plain(quantity(3.33e24, "FLOP", 3)), "3.33 YFLOP");
  assert.equal(quantity(6.88 / 3600, "USD/s"), "$6.88/h");
  assert.equal(quantity(512, ""), "512");
  assert.equal(quantity(0.45487, ""), "0.4549");
});

test("a change has its sign", () => {
  assert.equal(plain(signed(0.61)), "+61.0 %");
  assert.equal(plain(signed(-0.023)), "−2.3 %");
  assert.equal(plain(signed(0.0001)), "±0 %");
});

test("parts of a sum share unit and decimals", () => {
  const write = alike(7.19, "s");
  assert.deepEqual([6.299, 0.2815, 0].map(write).map(plain), ["6.30 s", "0.28 s", "0"]);
  const memory = alike(164348010960, "B");
  assert.deepEqual([17639415808, 1653695232].map(memory).map(plain), ["17.6 GB", "1.7 GB"]);
  assert.equal(plain(alike(7.19, "s")(0.00097)), "<0.01 s");
  assert.equal(plain(alike(7.19, "s", 1)(0.00047)), "0.0005 s");
  assert.deepEqual(
    [0.889, 0.0369, 0.000145, 0].map((x) => plain(share(x))),
    ["88.9 %", "3.7 %", "<0.1 %", "0.0 %"],
  );
});

test("labels of axes and sentences", () => {
  assert.equal(plain(tick(0.001, "s")), "1 ms");
  assert.equal(plain(tick(1000, "")), "1 k");
  assert.equal(tick(300, ""), "300");
  assert.equal(sentence("unknown model"), "Unknown model.");
});

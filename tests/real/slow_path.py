"""A slow path in a network namespace: packets to 10.9.0.2 come back from there to 10.9.0.1 after a delay each way.

Source and destination are swapped, which leaves checksums as they are, so that a server on 10.9.0.1 is reached at
10.9.0.2 over a path with a real round trip, without the kernel's netem.

    ip netns exec NAME python3 slow_path.py DELAY_MS      prints a line when the path is up; ends with SIGTERM
"""

import fcntl
import heapq
import os
import select
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


def main():
    delay = float(sys.argv[1]) / 1e3
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", b"slow0", IFF_TUN | IFF_NO_PI))
    subprocess.run("ip addr add 10.9.0.1/24 dev slow0 && ip link set slow0 up", shell=True, check=True)
    print("up", flush=True)
    due = []
    number = 0
    while True:
        wait = max(0.0, due[0][0] - time.monotonic()) if due else None
        if select.select([tun], [], [], wait)[0]:
            packet = bytearray(os.read(tun, 65536))
            if packet[0] >> 4 == 4:
                packet[12:16], packet[16:20] = packet[16:20], packet[12:16]
                number += 1
                heapq.heappush(due, (time.monotonic() + delay, number, bytes(packet)))
        while due and due[0][0] <= time.monotonic():
            os.write(tun, heapq.heappop(due)[2])


main()

#!/usr/bin/env bash
# Makes the videos of tests/data/videos. Every frame carries its number as a bar code (12 blocks of 16 x 32 pixels, lowest
# bit first, white = 1), so a test can say which frame it was given whatever the codec did to it. Run it only to add a
# video: the files are committed, because other versions of the encoders write other bytes.
#
#     apt-get install ffmpeg && tests/vision/video/make_videos.sh
set -eu
mkdir -p "$(dirname "$0")/../data/videos"
cd "$(dirname "$0")/../data/videos"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ff() { ffmpeg -v error -y -fflags +bitexact "$@"; }

# bars RATE FRAMES: the lossless source.
bars() {
    ff -f lavfi -i "color=black:s=192x32:r=$1:d=7200,format=gray,geq=lum='if(bitand(floor(N/pow(2,floor(X/16))),1),255,0)'" \
        -frames:v "$2" -c:v ffv1 "$work/$1.mkv"
}
bars 30 90
bars 12 20
bars 240 480
bars 1 3600
src=$work/30.mkv
x264="-pix_fmt yuv420p -c:v libx264 -preset veryfast -crf 30 -g 30 -bf 3 -flags +bitexact"

ff -i "$src" -f lavfi -i sine=d=3 -c:a aac -b:a 8k $x264 -shortest h264_sound.mp4
ff -i "$src" $x264 -movflags faststart h264_faststart.mp4
ff -i "$src" $x264 -movflags frag_keyframe+empty_moov h264_fragments.mp4
ff -i "$src" $x264 -vf crop=187:31:0:0,format=yuv444p -pix_fmt yuv444p h264_odd_size.mp4
ff -i "$src" $x264 -f matroska -live 1 - > h264_no_duration.mkv
ff -i "$src" $x264 -output_ts_offset -1.5 -avoid_negative_ts disabled h264_negative.mkv
ff -ss 0.5 -i h264_faststart.mp4 -c copy h264_edit_list.mp4
ff -i "$src" -vf "select='lt(mod(n,10),4)'" -vsync vfr $x264 h264_variable.mp4
ff -i "$work/240.mkv" $x264 h264_240fps.mp4
ff -i "$work/1.mkv" $x264 -crf 40 -g 600 h264_hour.mp4
ff -i "$src" $x264 -vf scale=4096:2304:flags=neighbor -crf 45 -g 90 h264_large.mp4
ff -i "$src" $x264 -frames:v 1 h264_one_frame.mp4
# B-frames throughout and at the end; key frames that others are shown before; no key frame but the first, whatever the
# container says (each frame refreshes a column of blocks); ten bits.
b="-b_strategy 0 -sc_threshold 0"
ff -i "$src" $x264 $b -frames:v 83 h264_b_frames.mp4
ff -i "$src" $x264 $b -x264-params open-gop=1 h264_open_gop.mkv
ff -i "$src" $x264 -g 20 -x264-params intra-refresh=1 h264_refresh.mkv
ff -i "$src" -pix_fmt yuv420p10le -c:v libx264 -preset veryfast -crf 30 -g 30 h264_10bit.mp4
ff -i "$src" -vf "select='gte(n,1000)'" $x264 no_frames.mp4
ff -i "$src" -vf "select='gte(n,1000)'" $x264 no_frames.mkv
ff -f lavfi -i sine=d=1 -c:a aac -b:a 8k sound_only.mp4
for turn in 90 180 270; do
    ff -i h264_faststart.mp4 -c copy -metadata:s:v rotate=$turn "h264_turned_$turn.mp4"
done
ff -i "$src" -pix_fmt yuv420p -c:v libx265 -x265-params log-level=none -preset fast -crf 30 hevc.mp4
ff -i "$src" -pix_fmt yuv420p10le -c:v libx265 -x265-params log-level=none -preset fast -crf 30 hevc_10bit.mkv
ff -i "$src" -pix_fmt yuv420p -c:v libvpx -b:v 100k -auto-alt-ref 1 -lag-in-frames 16 -pass 1 -passlogfile "$work/p" -f null -
ff -i "$src" -pix_fmt yuv420p -c:v libvpx -b:v 100k -auto-alt-ref 1 -lag-in-frames 16 -pass 2 -passlogfile "$work/p" vp8.webm
ff -i "$src" -pix_fmt yuv420p -c:v libvpx-vp9 -b:v 0 -crf 40 vp9.webm
ff -i "$src" -pix_fmt yuva420p -c:v libvpx-vp9 -b:v 0 -crf 40 -auto-alt-ref 0 vp9_alpha.webm
ff -i "$src" -pix_fmt yuv420p -c:v libaom-av1 -cpu-used 8 -crf 45 av1.mkv
ff -i "$src" -pix_fmt yuv420p -c:v mpeg4 -q:v 8 -bf 2 mpeg4.avi
ff -i "$src" -pix_fmt yuv420p -c:v mpeg4 -q:v 8 mpeg4.mp4
ff -i "$work/12.mkv" -pix_fmt yuvj420p -c:v mjpeg -q:v 8 mjpeg.mov
ff -i "$work/12.mkv" gif.gif
ff -i "$work/12.mkv" -c:v apng -f apng apng.png
ff -i "$work/12.mkv" -c:v libwebp_anim -lossless 1 -loop 0 webp.webp

# The frame size changes in the middle of the stream.
ff -i "$work/12.mkv" -frames:v 10 -pix_fmt yuvj420p -c:v mjpeg -q:v 8 "$work/a.avi"
ff -i "$work/12.mkv" -vf "select='gte(n,10)',setpts=N/12/TB,scale=384:64:flags=neighbor" -vsync vfr -pix_fmt yuvj420p -c:v mjpeg -q:v 8 "$work/b.avi"
printf "file '%s'\nfile '%s'\n" "$work/a.avi" "$work/b.avi" > "$work/list"
ff -f concat -safe 0 -i "$work/list" -c copy size_change.avi

ff -i "$src" $x264 -g 15 -frames:v 45 "$work/a.ts"
ff -i "$src" $x264 -g 15 -vf "select='gte(n,45)',setpts=N/30/TB,scale=384:64:flags=neighbor" -vsync vfr "$work/b.ts"
printf "file '%s'\nfile '%s'\n" "$work/a.ts" "$work/b.ts" > "$work/list"
ff -f concat -safe 0 -i "$work/list" -c copy h264_size_change.mp4

# A codec that is not on the list.
ff -i "$work/12.mkv" -c:v ffv1 ffv1.mkv

# The video track's data lies in another file, by an alias record with an absolute path.
python3 - h264_sound.mp4 external_track.mp4 << 'END'
import struct, sys
def box(kind, body): return struct.pack(">I4s", 8 + len(body), kind) + body
def record(kind, data): return struct.pack(">hH", kind, len(data)) + data
path = b"/etc/passwd"
alias = bytes(4 + 10) + bytes([1]) + b"x".ljust(27) + bytes(12) + bytes([6]) + b"passwd".ljust(63) + bytes(16)
alias += struct.pack(">hh", 1, 1) + bytes(16) + record(2, path + b"\0") + struct.pack(">hH", -1, 0)
dref = box(b"dref", struct.pack(">II", 0, 1) + box(b"alis", alias.ljust(150, b"\0")))
def rebuild(data):
    out, at = b"", 0
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + size]
        if kind in (b"moov", b"trak", b"mdia", b"minf", b"dinf"):
            out += box(kind, rebuild(body))
        else:
            out += dref if kind == b"dref" else data[at : at + size]
        at += size
    return out
open(sys.argv[2], "wb").write(rebuild(open(sys.argv[1], "rb").read()))
END

# Frames two hundred times as wide as high, and one pixel more.
python3 - narrow.gif << 'END'
import struct, sys
width = 201
def frame(color):
    codes, bits, n = [], 0, 0
    for i in range(width):
        codes += [4] if i % 2 == 0 else []  # the table is cleared before it grows
        codes.append(color)
    codes.append(5)
    for code in codes:
        bits |= code << n
        n += 3
    data = bits.to_bytes((n + 7) // 8, "little")
    blocks = b"".join(bytes([len(data[i : i + 255])]) + data[i : i + 255] for i in range(0, len(data), 255))
    return b"\x21\xf9\4\0" + struct.pack("<H", 50) + b"\0\0" + b"\x2c" + struct.pack("<HHHHB", 0, 0, width, 1, 0) + b"\2" + blocks + b"\0"
head = b"GIF89a" + struct.pack("<HHBBB", width, 1, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
open(sys.argv[1], "wb").write(head + frame(0) + frame(1) + b"\x3b")
END

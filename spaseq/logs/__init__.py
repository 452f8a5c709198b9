"""Logs on disk: records are durable once `commit` returns.

A log is a directory of segments, and a segment is a file of frames. `segment_log.SegmentLog` keeps
any records; `stream_log.StreamLog` keeps the messages of a stream, and the position in its source.
"""

"""The local runtime for live streams: messages of brokers, through logs, to answers in order."""

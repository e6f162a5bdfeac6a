# SPDX-License-Identifier: Apache-2.0
"""Layers of the models: parameters, statistics and forward FLOPs by table 3 of the paper."""
import json
import math

from configuration import image_extent

DETECTOR = "faster_rcnn_r50_fpn"
SEGMENTATION = "segmentation_net"


def half(extent):
    return -(-extent // 2)


class Model:
    """`parameters` are (name, rows, channels, pixels) in the order of the model's layers.

    `statistics` are (normalization, channels). `flops` are those of one sample, forward. Extents of
    tensors are (height, width, channels).
    """

    def __init__(self, config):
        self.config = config
        self.flops, self.parameters, self.statistics = 0, [], []
        model = config["workload.model"]
        self.strides_on_3x3 = model != "resnet50_v1"
        self.normalization = config["detector.normalization"] if model == DETECTOR else "batch"
        extent = (*image_extent(config), self.number("workload.channels"))
        {DETECTOR: self.detector, SEGMENTATION: self.segmentation}.get(model, self.resnet)(extent)

    def number(self, key):
        return int(self.config[key])

    def convolution(self, name, extent, filters, kernel, stride=1, is_first=True):
        """`is_first` is False for a later use of the same weights."""
        height, width, channels = extent
        if is_first:
            self.parameters.append((name + ".weight", filters, channels, kernel * kernel))
        height, width = -(-height // stride), -(-width // stride)
        self.flops += 2 * kernel * kernel * channels * filters * height * width
        return height, width, filters

    def bias(self, name, channels):
        self.parameters.append((name + ".bias", channels, 1, 1))

    def norm(self, name, extent):
        self.parameters.append((name + ".weight", extent[2], 1, 1))
        self.bias(name, extent[2])
        if self.normalization != "group":
            self.statistics.append((name, extent[2]))
        self.flops += math.prod(extent)

    def linear(self, name, rows, inputs, outputs, relu, pixels=1):
        self.parameters.append((name + ".weight", outputs, inputs // pixels, pixels))
        self.bias(name, outputs)
        self.flops += rows * outputs * (inputs + relu)

    def block(self, name, extent, width, stride):
        first, second = (1, stride) if self.strides_on_3x3 else (stride, 1)
        x = self.convolution(name + ".conv1", extent, width, 1, first)
        self.norm(name + ".bn1", x)
        self.flops += math.prod(x)
        x = self.convolution(name + ".conv2", x, width, 3, second)
        self.norm(name + ".bn2", x)
        self.flops += math.prod(x)
        x = self.convolution(name + ".conv3", x, 4 * width, 1)
        if stride != 1 or extent[2] != 4 * width:
            self.convolution(name + ".downsample.0", extent, 4 * width, 1, stride)
            self.norm(name + ".downsample.1", x)
        self.norm(name + ".bn3", x)
        self.flops += 2 * math.prod(x)  # addition and ReLU
        return x

    def backbone(self, prefix, extent, width, depths=(3, 4, 6, 3)):
        """Extents of the outputs of the stages."""
        x = self.convolution(prefix + "conv1", extent, width, 7, 2)
        self.norm(prefix + "bn1", x)
        self.flops += 2 * math.prod(x)  # ReLU and the pooling of its output
        x = half(x[0]), half(x[1]), width
        stages = []
        for stage, blocks in enumerate(depths):
            for index in range(blocks):
                stride = 2 if stage and not index else 1
                x = self.block(f"{prefix}layer{stage + 1}.{index}", x, width << stage, stride)
            stages.append(x)
        return stages

    def resnet(self, extent):
        stages = self.backbone("", extent, self.number("workload.backbone_width"),
                               json.loads(self.config["search.root_blocks"]))
        self.flops += math.prod(stages[-1])  # the mean over pixels
        self.linear("fc", 1, stages[-1][2], self.number("workload.classes"), False)

    def segmentation(self, extent):
        stages = self.backbone("backbone.", extent, 16, (1, 1, 1, 1))
        for stage in (3, 2, 1):
            finer = self.convolution(f"pyramid.lateral{stage + 1}", stages[stage], 64, 1)
            self.flops += math.prod(finer) if stage < 3 else 0  # the coarser one is added
        x = self.convolution("head.conv1", finer, 64, 3)
        self.norm("head.bn1", x)
        self.flops += math.prod(x)  # ReLU
        classes = self.number("workload.classes") + 1
        self.convolution("head.conv2", x, classes, 1)
        self.bias("head.conv2", classes)

    def detector(self, extent):
        stages = self.backbone("backbone.body.", extent, self.number("workload.backbone_width"))
        channels = self.number("detector.pyramid_channels")
        self.proposal_network(self.pyramid(stages, channels), channels)
        regions, features = self.number("detector.region_samples"), self.number("detector.head_features")
        classes = self.number("workload.classes") + 1
        self.linear("roi_heads.box_head.fc6", regions, 49 * channels, features, True, 49)
        self.linear("roi_heads.box_head.fc7", regions, features, features, True)
        self.linear("roi_heads.box_predictor.cls_score", regions, features, classes, False)
        self.linear("roi_heads.box_predictor.bbox_pred", regions, features, 4 * classes, False)

    def pyramid(self, levels, channels):
        """Extents of the five levels."""
        for kind, kernel in (("inner_blocks", 1), ("layer_blocks", 3)):
            made = []
            for level, extent in enumerate(levels):
                name = f"backbone.fpn.{kind}.{level}.0"
                made.append(self.convolution(name, extent, channels, kernel))
                self.bias(name, channels)
            levels = made
        self.flops += sum(math.prod(level) for level in levels[:3])  # coarser levels are added
        self.flops += math.prod(levels[3])  # and the coarsest pooled
        return [*levels, (half(levels[3][0]), half(levels[3][1]), channels)]

    def proposal_network(self, levels, channels):
        ratios = len(self.config["detector.anchor_ratios"].split(","))
        for name, filters, kernel in (("conv.0.0", channels, 3), ("cls_logits", ratios, 1),
                                      ("bbox_pred", 4 * ratios, 1)):
            for index, level in enumerate(levels):
                made = self.convolution("rpn.head." + name, level, filters, kernel, 1, index == 0)
                self.flops += math.prod(made) if kernel == 3 else 0  # ReLU
            self.bias("rpn.head." + name, filters)
